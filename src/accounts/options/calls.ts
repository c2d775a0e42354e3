import {
  boolean,
  duration,
  httpUrl,
  list,
  nullable,
  object,
  option,
  string,
} from '../../kernel/config/index.ts';

const transport = object({
  type: option(string({ minLength: 1 }), {
    description: 'The type of the transport, for instance `livekit`.',
    required: true,
  }),
  livekit_service_url: option(nullable(httpUrl()), {
    description: 'The URL of the LiveKit service. Only for transports of the type `livekit`.',
    default: null,
  }),
});

/** Options about calls. */
export const callOptions = {
  turn_uris: option(
    list(string({ pattern: '^(turns?|stuns?):\\S+$', allowed: 'a turn:, turns:, stun: or stuns: URI' })),
    {
      description: 'The TURN servers that clients use for calls.',
      default: [],
    },
  ),
  turn_shared_secret: option(nullable(string({ minLength: 1 })), {
    description:
      'The secret shared with the TURN servers, from which the passwords for clients are computed.',
    default: null,
    secret: true,
  }),
  turn_shared_secret_path: option(nullable(string({ minLength: 1 })), {
    description: 'A file with the value of `turn_shared_secret`.',
    default: null,
    since: '1.116.0',
    fileFor: 'turn_shared_secret',
  }),
  turn_username: option(nullable(string()), {
    description: 'A fixed user name for TURN servers without a shared secret.',
    default: null,
  }),
  turn_password: option(nullable(string()), {
    description: 'The password of the fixed user.',
    default: null,
    secret: true,
  }),
  turn_user_lifetime: option(duration(), {
    description: 'How long TURN credentials are valid.',
    default: '1h',
  }),
  turn_allow_guests: option(boolean(), {
    description:
      'Issues TURN credentials to guests, too. Calls of guests without these credentials often fail.',
    default: true,
  }),
  proto_rtc: option(
    object({
      transports: option(list(transport), {
        description: 'The transports that clients may use for group calls.',
        default: [],
      }),
    }),
    { description: 'Real-time group calls.', deprecatedNames: ['matrix_rtc'] },
  ),
};
