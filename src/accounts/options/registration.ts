import {
  boolean,
  httpUrl,
  list,
  nullable,
  object,
  oneOf,
  option,
  regularExpression,
  string,
} from '../../kernel/config/index.ts';

const media = ['email', 'msisdn'] as const;

/** Types of users that always exist. */
export const builtInUserTypes: readonly string[] = ['bot', 'support'];

/** Options about registration. */
export const registrationOptions = {
  enable_registration: option(boolean(), {
    description:
      'Lets users register accounts. With `registration_shared_secret` an administrator can create accounts even when this is off. Require a CAPTCHA, an address or a token as well, or the server will be abused.',
    default: false,
  }),
  enable_registration_without_verification: option(boolean(), {
    description:
      'Allows registration without any verification: no mail address, no phone number, no CAPTCHA, no token. It has an effect only with `enable_registration`.',
    default: false,
  }),
  registrations_require_3pid: option(list(oneOf(...media)), {
    description:
      'Kinds of addresses that a new user must give and verify: `email`, `msisdn` (phone number), or both.',
    default: [],
  }),
  disable_msisdn_registration: option(boolean(), {
    description: 'Never requires a phone number, even if `registrations_require_3pid` does.',
    default: false,
  }),
  allowed_local_3pids: option(
    nullable(
      list(
        object({
          medium: option(oneOf(...media), {
            description: 'The kind of address: `email` or `msisdn`.',
            required: true,
          }),
          pattern: option(regularExpression(), {
            description: 'A regular expression that allowed addresses of this kind match.',
            required: true,
          }),
        }),
      ),
    ),
    {
      description:
        'Patterns for the mail addresses and phone numbers that accounts may have. An address must match a pattern for its kind. Null allows all.',
      default: null,
    },
  ),
  enable_3pid_lookup: option(boolean(), {
    description:
      'Lets users invite others by mail address or phone number, which the server looks up at an identity server.',
    default: true,
  }),
  registration_requires_token: option(boolean(), {
    description:
      'Requires a registration token, which administrators create with the admin API. Turning this off keeps the tokens.',
    default: false,
  }),
  registration_shared_secret: option(nullable(string({ minLength: 1 })), {
    description:
      'A secret that allows programs to create accounts, including accounts of administrators, even when registration is off. After it is replaced, programs must fetch new nonces.',
    default: null,
    secret: true,
  }),
  registration_shared_secret_path: option(nullable(string({ minLength: 1 })), {
    description:
      'A file with the value of `registration_shared_secret`. A missing file is made, with a new secret.',
    default: null,
    since: '1.67.0',
    fileFor: 'registration_shared_secret',
    created: 'secret',
  }),
  allow_guest_access: option(boolean(), {
    description: 'Lets guests register without credentials and join rooms that allow guests.',
    default: false,
  }),
  default_identity_server: option(nullable(httpUrl()), {
    description: 'The identity server that clients are advised to use. It needs `public_baseurl`.',
    default: null,
  }),
  account_threepid_delegates: option(
    object({
      msisdn: option(nullable(httpUrl()), {
        description:
          'The identity server that sends validation texts to phones, and answers the `/requestToken` requests for them. When it is null, users cannot add phone numbers.',
        default: null,
      }),
    }),
    {
      description: 'Services that validate addresses for this server.',
      changed: ['1.66.0: `email` was removed (deprecated in 1.64.0); giving it is an error.'],
    },
  ),
  enable_3pid_changes: option(boolean(), {
    description: 'Lets users change their mail addresses and phone numbers.',
    default: true,
  }),
  inhibit_user_in_use_error: option(boolean(), {
    description:
      'Reports every user name as available until a registration is completed, so that user names cannot be enumerated. Completing a registration with a taken name is still an error.',
    default: false,
  }),
  allow_underscore_prefixed_registration: option(boolean(), {
    description: 'Allows user names that begin with an underscore. Application services use such names.',
    deprecatedNames: ['allow_underscore_prefixed_localpart'],
    default: false,
  }),
  request_token_inhibit_3pid_errors: option(boolean(), {
    description:
      'Answers `/requestToken` with a random session id instead of an error about an address that is in use, or that has no account, so that addresses cannot be enumerated.',
    default: false,
  }),
  next_link_domain_whitelist: option(nullable(list(string({ minLength: 1 }))), {
    description:
      'The domains that `next_link` of a validation request may lead to. They are checked even when another service validates the address. Null allows all, an empty list none.',
    default: null,
  }),
  user_types: option(
    object({
      default_user_type: option(nullable(string({ minLength: 1 })), {
        description:
          'The type of users who register without one: `bot`, `support` or one of `extra_user_types`.',
        default: null,
      }),
      extra_user_types: option(list(string({ minLength: 1 })), {
        description: 'Further types that users may have. Such users are treated like users without a type.',
        default: [],
      }),
    }),
    { description: 'Types of users.' },
  ),
};
