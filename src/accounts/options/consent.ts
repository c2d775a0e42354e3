import { boolean, nullable, numberAsText, object, option, string } from '../../kernel/config/index.ts';

const notice = object({
  msgtype: option(string({ minLength: 1 }), {
    description: 'The type of the message, for instance `m.text`.',
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
      'A directory with a subdirectory for each language, which holds `<version>.html` and `success.html`. It must be given when a listener serves `consent`.',
    default: null,
  }),
  version: option(nullable(numberAsText()), {
    description:
      'The version of the policy to which users must agree, and which is shown when a request names none. It must be given when a listener serves `consent`.',
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
      'Refuses events of users who have not agreed yet, with this text as the error, in which `%(consent_uri)s` stands for the link to the form. Null refuses none.',
    default: null,
  }),
  require_at_registration: option(boolean(), {
    description: 'Makes consent a stage of registration.',
    default: false,
  }),
  policy_name: option(string({ minLength: 1 }), {
    description: 'The name of the policy at registration.',
    default: 'Privacy Policy',
  }),
});

/** Options about users' consent to a policy. */
export const consentOptions = {
  user_consent: option(nullable(consent), {
    description: 'A policy to which users must agree. Null means that there is none.',
    default: null,
  }),
};
