import type { ExpectedDifference } from './expected-difference.ts';

const sliding = 'anna POST /_matrix/client/unstable/org.matrix.simplified_msc3575/sync*';

/** Differences of syncs. */
export const syncs: readonly ExpectedDifference[] = [
  {
    requests: ['* GET /sync?*'],
    at: ['*.summary.m.joined_member_count', '*.summary.m.invited_member_count', '*.summary'],
    what: 'All clients receive the counts of members when these change; the reference server sends them only for lazy loading',
    reason: 'The description of `summary` requires the counts when they have changed',
  },
  {
    requests: ['ben GET /sync?*'],
    at: ['*.timeline.prev_batch'],
    hearth: 'absent',
    what: 'An empty timeline has no `prev_batch`',
    reason: '`prev_batch` is the position before the first event of the timeline, and there is none',
  },
  {
    requests: ['ben GET /sync?timeout=21*'],
    at: ['*.ephemeral.events.*'],
    what: 'A threaded and an unthreaded receipt for the same event are two receipt events',
    reason:
      'One event could contain only one of them, because both have the same keys. The reference server leaves one out',
  },
  {
    requests: ['* GET /sync?*'],
    at: ['body.presence', 'body.presence.events.*'],
    what: 'Changes of presence are noticed a little earlier or later, and times of the last activity differ',
    reason: 'The specification leaves the timing open (decision 0021)',
  },
  {
    requests: ['* GET /sync?*'],
    at: ['body.device_lists', 'body.device_lists.*'],
    what: 'A new room does not add its creator to `device_lists`, and `device_lists` has both `changed` and `left`, or neither',
    reason:
      'The creator shares the room with no other user yet, and absent lists mean the same as empty ones',
  },
  {
    requests: ['anna GET /sync?*full_state=true&since={since} (full state)'],
    at: ['body.account_data'],
    what: '`full_state` repeats state, and no account data',
    reason: 'By its description, `full_state` concerns the state of rooms',
  },
  {
    requests: ['anna GET /sync?*(federation format)'],
    at: ['*.event_id'],
    hearth: 'absent',
    what: 'Events in the federation format have no event id',
    reason: 'From room version 3 on, events between servers contain no event id',
  },
  {
    requests: ['anna GET /sync?*(state after)'],
    at: ['*.state_after', '*.state'],
    what: '`use_state_after` is supported',
    reason: 'The parameter is part of the specification since version 1.16',
  },
  {
    requests: ['ben GET /sync?*(with left rooms)'],
    at: ['*.state.events.[m.room.member|{ben}]'],
    what: '`state` of a left room has the membership before the timeline',
    reason: 'By its description, `state` is the state before the timeline',
  },
  {
    requests: [sliding],
    at: ['*.ops', '*.membership', '*.lists', 'body.extensions.*'],
    what: 'Sliding sync has `membership` and `lists` of rooms, and neither `ops` nor empty extensions',
    reason: 'The newest version of MSC4186, the proposal for sliding sync, describes this format',
  },
];
