import { boolean, duration, list, nullable, object, option } from '../../kernel/config/index.ts';

const lifetime = (description: string) => option(nullable(duration()), { description, default: null });

const purgeJob = object({
  shortest_max_lifetime: lifetime(
    'The job handles rooms whose lifetime is above this. Null sets no lower bound.',
  ),
  longest_max_lifetime: lifetime(
    'The job handles rooms whose lifetime is at most this. Null sets no upper bound.',
  ),
  interval: option(duration(), { description: 'How often the job runs.', required: true }),
});

/** How long messages and rooms are remembered. */
export const retentionOptions = {
  redaction_retention_period: option(nullable(duration()), {
    description:
      'How long the content of a redacted message is kept, hidden. It is looked at every five minutes. Null keeps it for good.',
    default: '7d',
  }),
  forgotten_room_retention_period: option(nullable(duration()), {
    description: 'How long a room is kept that all local users have forgotten. Null keeps it for good.',
    default: null,
  }),
  retention: option(
    object({
      enabled: option(boolean(), {
        description:
          'Deletes messages that are older than their room lets them get (state event `m.room.retention`), and ignores such messages when other servers send them.',
        default: false,
      }),
      default_policy: option(
        object({
          min_lifetime: lifetime(
            'How long messages are kept at least. It is not taken into account at present.',
          ),
          max_lifetime: lifetime('How old messages may get. Null sets no limit.'),
        }),
        { description: 'The policy of rooms that have none.' },
      ),
      allowed_lifetime_min: lifetime(
        'The shortest lifetime that a room can choose; a shorter one is taken as this.',
      ),
      allowed_lifetime_max: lifetime(
        'The longest lifetime that a room can choose; a longer one is taken as this.',
      ),
      purge_jobs: option(nullable(list(purgeJob)), {
        description:
          'When messages are deleted, by the lifetime in their room. Rooms that no job covers are left alone, so one job should have no bounds, or one no lower and another no upper bound. Null runs one job for all rooms every day.',
        default: null,
      }),
    }),
    { description: 'Deleting old messages.' },
  ),
};
