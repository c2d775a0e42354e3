import type { Static } from 'typebox';
import { integer, nullable, number, object, option, type SectionType, section } from '../config/index.ts';

const perSecond = {
  description: 'How many are allowed per second in the long run.',
  unit: 'actions per second',
};
const burstCount = { description: 'How many are allowed at once before the rate applies.', unit: 'actions' };

function rc(perSecondDefault: number, burstDefault: number) {
  return object({
    per_second: option(number({ minimum: 0 }), { ...perSecond, default: perSecondDefault }),
    burst_count: option(number({ minimum: 0 }), { ...burstCount, default: burstDefault }),
  });
}

function limit(perSecondDefault: number, burstDefault: number, description: string, since?: string) {
  const notes = { description, whole: true as const, ...(since !== undefined && { since }) };
  return option(rc(perSecondDefault, burstDefault), notes);
}

const givenRc = object({
  per_second: option(number({ minimum: 0 }), { ...perSecond, required: true }),
  burst_count: option(number({ minimum: 0 }), { ...burstCount, required: true }),
});

/** A leaky bucket: `per_second` drain from it, `burst_count` fit into it. */
export type RateLimit = Static<ReturnType<typeof rc>>;

const federationLimit = object({
  window_size: option(integer({ minimum: 1 }), {
    description: 'The span over which requests are counted.',
    default: 1000,
    unit: 'milliseconds',
  }),
  sleep_limit: option(integer({ minimum: 0 }), {
    description: 'How many requests of one server in a window are answered without delay.',
    default: 10,
    unit: 'requests',
  }),
  sleep_delay: option(integer({ minimum: 0 }), {
    description: 'How long each request beyond that is delayed.',
    default: 500,
    unit: 'milliseconds',
  }),
  reject_limit: option(integer({ minimum: 0 }), {
    description: 'How many requests of one server may wait before further ones are refused.',
    default: 50,
    unit: 'requests',
  }),
  concurrent: option(integer({ minimum: 1 }), {
    description: 'How many requests of one server are worked on at the same time.',
    default: 3,
    unit: 'requests',
  }),
});

/** How often things may be done. */
export const rateLimitsSection = section({
  title: 'Rate limits',
  description:
    'How often things may be done. Each limit is a bucket: `burst_count` actions are allowed at once, and `per_second` of them become allowed again each second.',
  options: {
    rc_message: limit(0.2, 10, 'Sending messages, for each account.'),
    rc_registration: limit(0.17, 3, 'Registrations, for each client address.'),
    rc_registration_token_validity: limit(
      0.1,
      5,
      'Asking whether a registration token is valid, for each client address.',
    ),
    rc_login: option(
      object({
        address: limit(0.003, 5, 'Logins, for each client address.'),
        account: limit(0.003, 5, 'Logins, for each account that is logged in to.'),
        failed_attempts: limit(0.17, 3, 'Failed logins, for each account that is tried.'),
      }),
      { description: 'Logging in.' },
    ),
    rc_admin_redaction: option(nullable(givenRc), {
      description:
        "Redactions of others' messages by people with power in a room. Null applies `rc_message` to them.",
      default: null,
      whole: true,
    }),
    rc_joins: option(
      object({
        local: limit(0.1, 10, 'Joining rooms that this server is in, for each user.'),
        remote: limit(0.01, 10, 'Joining rooms that this server is not in yet, for each user.'),
      }),
      { description: 'Joining rooms.' },
    ),
    rc_joins_per_room: limit(1, 10, 'Joins to one room by anyone.', '1.64.0'),
    rc_3pid_validation: limit(
      0.003,
      5,
      'Attempts to validate an address or phone number, for each user or client address.',
    ),
    rc_invites: option(
      object({
        per_room: limit(0.3, 10, 'Invitations to one room, those of its creation included.'),
        per_user: limit(0.003, 5, 'Invitations that one user receives.'),
        per_issuer: limit(0.3, 10, 'Invitations that one user sends.', '1.63'),
      }),
      { description: 'Inviting.' },
    ),
    rc_third_party_invite: limit(
      0.2,
      10,
      'Invitations of addresses and phone numbers, for each account that sends them.',
    ),
    rc_media_create: limit(10, 50, 'Creating media addresses to upload to, for each account.'),
    rc_presence: option(
      object({
        per_user: limit(
          0.1,
          1,
          'Presence updates of one user. Through sync, updates beyond the limit are ignored in silence.',
        ),
      }),
      { description: 'Presence.' },
    ),
    rc_delayed_event_mgmt: limit(
      1,
      5,
      'Restarting, cancelling and viewing delayed events, for each account and device. Creating them counts as `rc_message`.',
    ),
    rc_reports: limit(1, 5, 'Reporting content, for each account.'),
    rc_room_creation: limit(0.016, 10, 'Creating rooms, for each account.'),
    rc_federation: option(federationLimit, { description: 'Requests of other servers.' }),
  },
});

export type RateLimitsConfig = SectionType<typeof rateLimitsSection>;
