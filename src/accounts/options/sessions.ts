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
    description: 'The minimum length of a password.',
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

/** Options about logins and sessions. */
export const sessionOptions = {
  session_lifetime: option(duration(), {
    description:
      'How long a login lasts. The end is set at login: changing this does not affect existing sessions. Guests cannot have limited sessions.',
    default: 'infinity',
  }),
  refreshable_access_token_lifetime: option(duration(), {
    description: 'How long an access token is valid for a client that can refresh it.',
    default: '5m',
  }),
  refresh_token_lifetime: option(duration(), {
    description: 'How long a refresh token is valid unless it is exchanged for a new one.',
    default: 'infinity',
  }),
  nonrefreshable_access_token_lifetime: option(duration(), {
    description: 'How long an access token is valid for a client that cannot refresh it.',
    default: 'infinity',
  }),
  ui_auth: option(
    withShorthand(
      'session_timeout',
      object({
        session_timeout: option(duration(), {
          description:
            'How long a confirmation suffices for further actions. With 0, every action must be confirmed.',
          default: 0,
        }),
      }),
    ),
    {
      description:
        'How long a user who has confirmed an action with a password need not do so again. Deactivating the account, changing the password, adding an address and creating a login token must always be confirmed. A bare duration stands for `session_timeout`.',
      default: 0,
    },
  ),
  login_via_existing_session: option(
    object({
      enabled: option(boolean(), {
        description: 'Lets a session create a token with which another client logs in to the same account.',
        default: false,
      }),
      require_ui_auth: option(boolean(), {
        description: 'Requires a confirmation before a token is created.',
        default: true,
      }),
      token_timeout: option(duration(), { description: 'How long such a token is valid.', default: '5m' }),
    }),
    { description: 'Logging in with a token from an existing session.' },
  ),
  bcrypt_rounds: option(integer({ minimum: 4, maximum: 31 }), {
    description: 'The cost of password hashes: two to the power of this number of rounds.',
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
          'A secret that is included in every password hash. After it is changed, no stored password matches.',
        default: null,
        secret: true,
      }),
      policy: option(policy, { description: 'Requirements for new passwords.' }),
    }),
    { description: 'Passwords.' },
  ),
  proto_authentication_service: option(
    object({
      enabled: option(boolean(), {
        description:
          'Delegates login and registration to the service. When off, this server does both itself.',
        default: false,
      }),
      endpoint: option(
        string({ pattern: '^https?://\\S+$', allowed: 'an absolute http:// or https:// URL' }),
        {
          description: 'The URL of the service, which must offer its discovery and oauth resources there.',
          default: 'http://localhost:8080',
        },
      ),
      force_http2: option(boolean(), {
        description: 'Sends requests to the service by HTTP/2 only, also without TLS.',
        default: false,
      }),
      secret: option(nullable(string({ minLength: 1 })), {
        description: 'The secret that this server and the service present to each other.',
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
