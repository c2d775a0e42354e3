import { boolean, nullable, numberAsText, object, option, string } from '../../kernel/config/index.ts';

const notice = object({
  msgtype: option(string({ minLength: 1 }), {
    description: 'The type of the message, such as `m.text`.',
    required: true,
  }),
  body: option(string({ minLength: 1 }), {
    description: 'The text, in which `%(consent_uri)s` stands for the link to the form.',
    required: true,
  }),
});

const consent = object({
  template_dir: option(nullable(string({ minLength: 1 })), {
    description:
      'A directory with a subdirectory for each language, which holds `<policy>.html` and `success.html`. It must be given when a listener serves `consent`.',
    default: null,
  }),
  version: option(nullable(numberAsText()), {
    description:
      'The version of the policy that is shown when a request names none. It must be given when a listener serves `consent`.',
    default: null,
  }),
  server_notice_content: option(nullable(notice), {
    description: 'A notice to users who have not agreed yet. It needs `server_notices`.',
    default: null,
  }),
  send_server_notice_to_guests: option(boolean(), {
    description: 'Sends the notice to guests as well.',
    default: false,
  }),
  block_events_error: option(nullable(string({ minLength: 1 })), {
    description:
      'Lets users send nothing before they agree; this text is the error they get, in which `%(consent_uri)s` stands for the link to the form. Null lets them.',
    default: null,
  }),
  require_at_registration: option(boolean(), {
    description: 'Makes agreeing a step of the registration.',
    default: false,
  }),
  policy_name: option(string({ minLength: 1 }), {
    description: 'What the policy is called at registration.',
    default: 'Privacy Policy',
  }),
});

/** Agreement of users to a policy. */
export const consentOptions = {
  user_consent: option(nullable(consent), {
    description: 'A policy that users are asked to agree to. Null asks for none.',
    default: null,
  }),
};
