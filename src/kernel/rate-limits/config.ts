import type { Static } from 'typebox';
import { integer, nullable, number, object, option, type SectionType, section } from '../config/index.ts';

const perSecond = {
  description: 'How many actions are allowed per second in the long run.',
  unit: 'actions per second',
};
const burstCount = {
  description: 'How many actions are allowed at once before the rate applies.',
  unit: 'actions',
};

function limitSchema(perSecondDefault: number, burstDefault: number) {
  return object({
    per_second: option(number({ minimum: 0 }), { ...perSecond, default: perSecondDefault }),
    burst_count: option(number({ minimum: 0 }), { ...burstCount, default: burstDefault }),
  });
}

function limitOption(perSecondDefault: number, burstDefault: number, description: string, since?: string) {
  const notes = { description, countsAsOne: true as const, ...(since !== undefined && { since }) };
  return option(limitSchema(perSecondDefault, burstDefault), notes);
}

const requiredLimitSchema = object({
  per_second: option(number({ minimum: 0 }), { ...perSecond, required: true }),
  burst_count: option(number({ minimum: 0 }), { ...burstCount, required: true }),
});

/** A leaky bucket: `burst_count` actions fit into it, and `per_second` of them drain from it each second. */
export type RateLimit = Static<ReturnType<typeof limitSchema>>;

const federationLimitSchema = object({
  window_size: option(integer({ minimum: 1 }), {
    description: 'The window in which requests are counted.',
    default: 1000,
    unit: 'milliseconds',
  }),
  sleep_limit: option(integer({ minimum: 0 }), {
    description: 'How many requests of one server per window are answered without delay.',
    default: 10,
    unit: 'requests',
  }),
  sleep_delay: option(integer({ minimum: 0 }), {
    description: 'How long each further request is delayed.',
    default: 500,
    unit: 'milliseconds',
  }),
  reject_limit: option(integer({ minimum: 0 }), {
    description: 'How many requests of one server may wait before further ones are rejected.',
    default: 50,
    unit: 'requests',
  }),
  concurrent: option(integer({ minimum: 1 }), {
    description: 'How many requests of one server are handled at the same time.',
    default: 3,
    unit: 'requests',
  }),
});

/** Options of all rate limits. */
export const rateLimitsSection = section({
  title: 'Rate limits',
  description:
    'How often users and servers may do things. Each limit is a bucket: `burst_count` actions are allowed at once, and `per_second` of them become allowed again each second.',
  options: {
    rc_message: limitOption(
      0.2,
      10,
      'Sending messages and state events, knocking, and changing the own profile in a single room, for each account.',
    ),
    rc_registration: limitOption(0.17, 3, 'Registrations, for each client address.'),
    rc_registration_token_validity: limitOption(
      0.1,
      5,
      'Checks whether a registration token is valid, for each client address.',
    ),
    rc_login: option(
      object({
        address: limitOption(0.003, 5, 'Logins, for each client address.'),
        account: limitOption(0.003, 5, 'Logins, for each account.'),
        failed_attempts: limitOption(0.17, 3, 'Failed logins, for each account.'),
      }),
      { description: 'Logging in.' },
    ),
    rc_admin_redaction: option(nullable(requiredLimitSchema), {
      description:
        "Redactions of other users' messages by users with enough power in the room. Null applies `rc_message` to them.",
      default: null,
      countsAsOne: true,
    }),
    rc_joins: option(
      object({
        local: limitOption(0.1, 10, 'Joining rooms that this server is in, for each user.'),
        remote: limitOption(0.01, 10, 'Joining rooms that this server is not in yet, for each user.'),
      }),
      { description: 'Joining rooms.' },
    ),
    rc_joins_per_room: limitOption(1, 10, 'Joins to one room, of all users together.', '1.64.0'),
    rc_3pid_validation: limitOption(
      0.003,
      5,
      'Requests to validate a mail address or phone number, for each client address and for each validated address or number.',
    ),
    rc_invites: option(
      object({
        per_room: limitOption(0.3, 10, 'Invitations to one room, including invitations at its creation.'),
        per_user: limitOption(0.003, 5, 'Invitations that one user receives.'),
        per_issuer: limitOption(0.3, 10, 'Invitations that one user sends.', '1.63'),
      }),
      { description: 'Inviting.' },
    ),
    rc_third_party_invite: limitOption(
      0.2,
      10,
      'Invitations of addresses and phone numbers, for each account that sends them.',
    ),
    rc_media_create: limitOption(10, 50, 'Creating media addresses to upload to, for each account.'),
    rc_presence: option(
      object({
        per_user: limitOption(
          0.1,
          1,
          'Presence updates of one user. Updates through sync beyond the limit are ignored silently.',
        ),
      }),
      { description: 'Presence.' },
    ),
    rc_delayed_event_mgmt: limitOption(
      1,
      5,
      'Restarting, cancelling and viewing delayed events, for each account and device. Creating them counts as `rc_message`.',
    ),
    rc_reports: limitOption(1, 5, 'Reporting content, for each account.'),
    rc_room_creation: limitOption(0.016, 10, 'Creating rooms, for each account.'),
    rc_federation: option(federationLimitSchema, { description: 'Requests of other servers.' }),
  },
});

export type RateLimitsConfig = SectionType<typeof rateLimitsSection>;
