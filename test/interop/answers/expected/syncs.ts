import type { ExpectedDifference } from './expected-difference.ts';

const sliding = 'anna POST /_matrix/client/unstable/org.matrix.simplified_msc3575/sync*';

/** Differences of syncs. */
export const syncs: readonly ExpectedDifference[] = [
  {
    requests: ['* GET /sync?*'],
    at: ['*.summary.m.joined_member_count', '*.summary.m.invited_member_count', '*.summary'],
    what: 'All clients receive the counts of members when these change; the reference server sends them only for lazy loading',
    reason: 'Description of `summary`',
  },
  {
    requests: ['ben GET /sync?*'],
    at: ['*.timeline.prev_batch'],
    hearth: 'absent',
    what: 'An empty timeline has no `prev_batch`',
    reason: '`prev_batch` is the position before the first event of the timeline',
  },
  {
    requests: ['ben GET /sync?timeout=21*'],
    at: ['*.ephemeral.events.*'],
    what: 'A threaded and an unthreaded receipt for the same event are two receipt events',
    reason: 'Their content has the same keys; the reference server leaves one out',
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
    reason: 'The creator shares the room with no other user yet',
  },
  {
    requests: ['anna GET /sync?*full_state=true&since={since} (full state)'],
    at: ['body.account_data'],
    what: '`full_state` repeats state, and no account data',
    reason: 'Description of `full_state`',
  },
  {
    requests: ['anna GET /sync?*(federation format)'],
    at: ['*.event_id'],
    hearth: 'absent',
    what: 'Events in the federation format have no event id',
    reason: 'Room versions from 3 on have none in events',
  },
  {
    requests: ['anna GET /sync?*(state after)'],
    at: ['*.state_after', '*.state'],
    what: '`use_state_after` is supported',
    reason: 'Version 1.16 of the specification',
  },
  {
    requests: ['ben GET /sync?*(with left rooms)'],
    at: ['*.state.events.[m.room.member|{ben}]'],
    what: '`state` of a left room has the membership before the timeline',
    reason: 'Description of `state`',
  },
  {
    requests: [sliding],
    at: ['*.ops', '*.membership', '*.lists', 'body.extensions.*'],
    what: 'Sliding sync has `membership` and `lists` of rooms, and neither `ops` nor empty extensions',
    reason: 'Newest version of MSC4186',
  },
];
