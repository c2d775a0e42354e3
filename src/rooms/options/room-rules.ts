import type { Static, TObject } from 'typebox';
import type { Rule } from '../../kernel/config/index.ts';
import type { autoJoinOptions } from './auto-join.ts';
import type { creationOptions } from './creation.ts';
import type { retentionOptions } from './retention.ts';

type AutoJoin = Static<TObject<typeof autoJoinOptions>>;
type Creation = Static<TObject<typeof creationOptions>>;
type Retention = Static<TObject<typeof retentionOptions>>;

const privatePresets: Rule<AutoJoin> = (values, view) => {
  const preset = values.autocreate_auto_join_room_preset;
  if (preset !== 'public_chat' && values.auto_join_mxid_localpart === null) {
    view.error('autocreate_auto_join_room_preset', `${preset} needs auto_join_mxid_localpart`);
  }
};

const positiveDelay: Rule<Creation> = ({ max_event_delay_duration }, view) => {
  if (max_event_delay_duration === 0) {
    view.error('max_event_delay_duration', 'found 0; allowed: a duration above 0, or null');
  }
};

const lifetimeOrder: Rule<Retention> = ({ retention }, view) => {
  const pairs = [
    [
      'retention.default_policy',
      'min_lifetime',
      retention.default_policy.min_lifetime,
      'max_lifetime',
      retention.default_policy.max_lifetime,
    ],
    [
      'retention',
      'allowed_lifetime_min',
      retention.allowed_lifetime_min,
      'allowed_lifetime_max',
      retention.allowed_lifetime_max,
    ],
    ...(retention.purge_jobs ?? []).map(
      (job, index) =>
        [
          `retention.purge_jobs[${index}]`,
          'shortest_max_lifetime',
          job.shortest_max_lifetime,
          'longest_max_lifetime',
          job.longest_max_lifetime,
        ] as const,
    ),
  ] as const;
  for (const [path, lowerName, lower, upperName, upper] of pairs) {
    if (lower !== null && upper !== null && lower > upper)
      view.error(`${path}.${lowerName}`, `must not be above ${upperName}`);
  }
};

const purgeCoverage: Rule<Retention> = ({ retention: { purge_jobs: jobs } }, view) => {
  if (jobs === null) return;
  for (const [index, { interval }] of jobs.entries()) {
    if (interval === 0)
      view.error(`retention.purge_jobs[${index}].interval`, 'found 0; allowed: a duration above 0');
  }
  const hasJobWithoutLowerBound = jobs.some((job) => job.shortest_max_lifetime === null);
  const hasJobWithoutUpperBound = jobs.some((job) => job.longest_max_lifetime === null);
  if (!hasJobWithoutLowerBound || !hasJobWithoutUpperBound) {
    const bounds = [
      ...(hasJobWithoutLowerBound ? [] : ['without a lower bound']),
      ...(hasJobWithoutUpperBound ? [] : ['without an upper bound']),
    ];
    view.warn('retention.purge_jobs', `leaves rooms out: add a job ${bounds.join(' and one ')}`);
  }
};

/** Rules between the options of rooms. */
export const roomRules = [privatePresets, positiveDelay, lifetimeOrder, purgeCoverage];
