import {
  boolean,
  duration,
  integer,
  list,
  mapOf,
  nullable,
  object,
  oneOf,
  option,
  string,
} from '../../kernel/config/index.ts';

const days = 'days';

/** Options about blocking, counting and recording the activity of users. */
export const activityOptions = {
  admin_contact: option(nullable(string()), {
    description:
      'How users reach the administrator, for instance a `mailto:` URI. Errors about resource limits contain it.',
    default: null,
  }),
  hs_disabled: option(boolean(), {
    description: 'Refuses all requests of users who are not administrators.',
    default: false,
  }),
  hs_disabled_message: option(string(), {
    description: 'The text of the error that users receive while `hs_disabled` is on.',
    default: 'This homeserver is blocked.',
  }),
  limit_usage_by_mau: option(boolean(), {
    description: 'Refuses further users when `max_mau_value` users have been active this month.',
    default: false,
  }),
  max_mau_value: option(integer({ minimum: 0 }), {
    description: 'How many users may be active in a month. It must be given with `limit_usage_by_mau`.',
    default: 0,
    unit: 'users',
  }),
  mau_trial_days: option(integer({ minimum: 0 }), {
    description: 'For how many days a new user is not counted.',
    default: 0,
    unit: days,
  }),
  mau_appservice_trial_days: option(mapOf(integer({ minimum: 0 })), {
    description:
      "For how many days new users of an application service are not counted, by the service's id. For services that are not listed it is `mau_trial_days`.",
    default: {},
    unit: days,
  }),
  mau_limit_alerting: option(boolean(), {
    description: 'Notifies users in their clients when the limit is reached.',
    default: true,
  }),
  mau_stats_only: option(boolean(), {
    description:
      'Counts active users for the metrics without limiting them. `limit_usage_by_mau` counts them as well.',
    default: false,
  }),
  mau_limit_reserved_threepids: option(
    list(
      object({
        medium: option(oneOf('email', 'msisdn'), { description: 'The kind of the address.', required: true }),
        address: option(string({ minLength: 1 }), { description: 'The address.', required: true }),
      }),
    ),
    {
      description: 'Mail addresses and phone numbers whose accounts are exempt from the limit.',
      default: [],
    },
  ),
  user_ips_max_age: option(nullable(duration()), {
    description:
      'How long the addresses of users and the times of their requests are stored. Null stores them forever.',
    default: '28d',
  }),
  track_puppeted_user_ips: option(boolean(), {
    description:
      'When an administrator acts as a user, records the activity for that user too, who then counts as active.',
    default: false,
  }),
};
