import { boolean, duration, list, nullable, object, option } from '../../kernel/config/index.ts';

const lifetime = (description: string) => option(nullable(duration()), { description, default: null });

const purgeJob = object({
  shortest_max_lifetime: lifetime(
    'The job handles rooms whose `max_lifetime` is above this. Null sets no lower bound.',
  ),
  longest_max_lifetime: lifetime(
    'The job handles rooms whose `max_lifetime` is at most this. Null sets no upper bound.',
  ),
  interval: option(duration(), { description: 'How often the job runs.', required: true }),
});

/** How long messages and rooms are stored. */
export const retentionOptions = {
  redaction_retention_period: option(nullable(duration()), {
    description:
      'How long the original content of a redacted event is stored, hidden. Expired content is deleted every five minutes. Null stores it without limit.',
    default: '7d',
  }),
  forgotten_room_retention_period: option(nullable(duration()), {
    description:
      'How long a room is stored after all local users have forgotten it. Null stores it without limit.',
    default: null,
  }),
  retention: option(
    object({
      enabled: option(boolean(), {
        description:
          'Deletes messages that are older than the retention policy of their room allows (state event `m.room.retention`), and ignores such messages when other servers send them.',
        default: false,
      }),
      default_policy: option(
        object({
          min_lifetime: lifetime(
            'The minimum time for which messages are stored. It has no effect at present.',
          ),
          max_lifetime: lifetime('The maximum age of messages. Null sets no limit.'),
        }),
        { description: 'The policy of rooms without a policy of their own.' },
      ),
      allowed_lifetime_min: lifetime(
        'The minimum lifetime that a room can set; a shorter lifetime is raised to it.',
      ),
      allowed_lifetime_max: lifetime(
        'The maximum lifetime that a room can set; a longer lifetime is lowered to it.',
      ),
      purge_jobs: option(nullable(list(purgeJob)), {
        description:
          'When messages are deleted, by the `max_lifetime` of their room. Messages in rooms that no job covers are not deleted, so one job should have no bounds, or one job no lower bound and another job no upper bound, without a gap between the jobs. Null runs one job for all rooms every day.',
        default: null,
      }),
    }),
    { description: 'Deletion of old messages.' },
  ),
};
