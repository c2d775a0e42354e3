import {
  boolean,
  duration,
  integer,
  nullable,
  object,
  oneOf,
  option,
  string,
  withShorthand,
} from '../../kernel/config/index.ts';

const policy = object({
  enabled: option(boolean(), { description: 'Applies the rules below to new passwords.', default: false }),
  minimum_length: option(integer({ minimum: 0 }), {
    description: 'The least length of a password.',
    default: 0,
    unit: 'characters',
  }),
  require_digit: option(boolean(), { description: 'Requires a digit.', default: false }),
  require_symbol: option(boolean(), {
    description: 'Requires a character that is neither a letter nor a digit.',
    default: false,
  }),
  require_lowercase: option(boolean(), { description: 'Requires a lowercase letter.', default: false }),
  require_uppercase: option(boolean(), { description: 'Requires an uppercase letter.', default: false }),
});

/** How people log in, and for how long. */
export const sessionOptions = {
  session_lifetime: option(duration(), {
    description:
      'How long a login lasts. It is fixed at the login: changing it does not touch sessions that exist. Guests cannot have limited sessions.',
    default: 'infinity',
  }),
  refreshable_access_token_lifetime: option(duration(), {
    description: 'How long an access token works for a client that can refresh it.',
    default: '5m',
  }),
  refresh_token_lifetime: option(duration(), {
    description: 'How long a refresh token works when it is not exchanged for a new one.',
    default: 'infinity',
  }),
  nonrefreshable_access_token_lifetime: option(duration(), {
    description: 'How long an access token works for a client that cannot refresh it.',
    default: 'infinity',
  }),
  ui_auth: option(
    withShorthand(
      'session_timeout',
      object({
        session_timeout: option(duration(), {
          description: 'How long one proof of identity lasts. 0 asks for every action anew.',
          default: 0,
        }),
      }),
    ),
    {
      description:
        'How long a user who has confirmed an action with a password need not do so again. Deactivating the account, changing the password, adding an address and minting a login token always ask. A bare duration stands for `session_timeout`.',
      default: 0,
    },
  ),
  login_via_existing_session: option(
    object({
      enabled: option(boolean(), {
        description: 'Lets a session mint a token with which another client logs in to the same account.',
        default: false,
      }),
      require_ui_auth: option(boolean(), {
        description: 'Asks the user to confirm their identity before a token is minted.',
        default: true,
      }),
      token_timeout: option(duration(), { description: 'How long such a token works.', default: '5m' }),
    }),
    { description: 'Logging in by means of a session that exists.' },
  ),
  bcrypt_rounds: option(integer({ minimum: 4, maximum: 31 }), {
    description: 'How hard password hashes are to compute: two to the power of this many rounds.',
    default: 12,
    unit: 'binary logarithm of rounds',
  }),
  password_config: option(
    object({
      enabled: option(oneOf(true, false, 'only_for_reauth'), {
        description:
          'Lets users log in with a password. With `only_for_reauth`, passwords confirm actions but open no session, and none can be set.',
        default: true,
      }),
      localdb_enabled: option(boolean(), {
        description:
          "Checks passwords against the server's own database. It has no effect when passwords are off.",
        default: true,
      }),
      pepper: option(nullable(string()), {
        description:
          'A secret that goes into every password hash. After it is changed, no password fits any more.',
        default: null,
        secret: true,
      }),
      policy: option(policy, { description: 'What a new password must be like.' }),
    }),
    { description: 'Passwords.' },
  ),
  proto_authentication_service: option(
    object({
      enabled: option(boolean(), {
        description:
          'Leaves logging in and registering to the service. When off, this server does it itself.',
        default: false,
      }),
      endpoint: option(
        string({ pattern: '^https?://\\S+$', allowed: 'an absolute http:// or https:// URL' }),
        {
          description: 'The URL of the service, which must offer its discovery and oauth resources there.',
          default: 'http://localhost:8080',
        },
      ),
      secret: option(nullable(string({ minLength: 1 })), {
        description: 'The secret that the two show each other in their requests.',
        default: null,
        secret: true,
      }),
      secret_path: option(nullable(string({ minLength: 1 })), {
        description: 'A file with the value of `secret`.',
        default: null,
        fileFor: 'secret',
      }),
    }),
    {
      description: 'A separate service that authenticates users.',
      deprecatedNames: ['matrix_authentication_service'],
    },
  ),
};
