import { type ExpectedDifference, everywhere, status } from './expected-difference.ts';

/** Differences about rooms. */
export const rooms: readonly ExpectedDifference[] = [
  {
    requests: everywhere,
    at: [
      '*.age',
      '*.user_id',
      '*.replaces_state',
      '*.prev_content',
      'body.redacted_because',
      'body.age',
      'body.user_id',
    ],
    hearth: 'absent',
    what: 'Events have `age`, `prev_content`, `replaces_state` and `redacted_because` in `unsigned` only, and no `user_id`',
    reason:
      'The copies at the top level are older than the specification; clients read `unsigned` and `sender`',
  },
  {
    requests: everywhere,
    at: ['*.unsigned'],
    hearth: 'absent',
    what: 'Stripped state and the event in `redacted_because` have no `unsigned`',
    reason: 'The schema of stripped state has no `unsigned`, and clients need nothing that it could contain',
  },
  {
    requests: everywhere,
    at: ['*.unsigned.prev_content', '*.unsigned.prev_sender'],
    reference: 'absent',
    what: 'State in `/members` and `/initialSync` has the previous content, as elsewhere',
    reason: 'The specification describes `unsigned` alike for all events',
  },
  {
    requests: everywhere,
    at: ['*.unsigned.membership', '*.unsigned.transaction_id'],
    reference: 'absent',
    what: 'Events in threads, bundled aggregations and `/initialSync` have the membership and transaction id, as elsewhere',
    reason: 'The specification describes `unsigned` alike for all events',
  },
  {
    requests: everywhere,
    at: ['*m.call.invite'],
    hearth: 'absent',
    what: 'Public rooms have no power level of their own for calls',
    reason:
      'The specification has no such level; operators can set it (`default_power_level_content_override`)',
  },
  {
    requests: everywhere,
    at: ['*.m.topic.m.text.[0].mimetype'],
    reference: 'absent',
    what: 'The topic of a new room names its media type, `text/plain`',
    reason: 'The description of `POST /createRoom` names this media type',
  },
  {
    requests: ['anna GET /rooms/{private}/state', 'anna GET /capabilities'],
    at: ['*room_version', '*.content.creator', '*.m.room_versions.default'],
    what: 'The default room version is 10, not 11',
    reason:
      'The interface document (docs/glossary.md) has this default for the option `default_room_version`',
  },
  {
    requests: ['anna GET /rooms/{upgraded}/state'],
    at: ['body.[m.room.guest_access|]'],
    what: 'An upgraded room admits guests only if the old one did',
    reason: 'The upgrade copies the state of the old room',
  },
  {
    requests: ['anna POST /publicRooms (unknown network)'],
    at: status,
    what: 'An unknown network has an empty directory',
    reason: 'The specification has no error for an unknown network',
  },
  {
    requests: ['anna GET /rooms/{room}/members?membership=join&not_membership=join'],
    at: ['body.chunk*'],
    what: '`/members` with both `membership` and `not_membership` returns the members that one of them selects; the reference server requires both',
    reason: 'The description of the parameters says "or"',
  },
  {
    requests: ['cleo GET /rooms/{room}/joined_members (world-readable)'],
    at: status,
    what: '`/joined_members` is for members, also in world-readable rooms',
    reason: 'By the description of the operation, the requester must be in the room',
  },
  {
    requests: ['anna POST /search*'],
    at: ['*.context', '*.groups'],
    what: 'Search results have a context only if the request has `event_context`, and groups always if it has `groupings`',
    reason:
      'The schema of the request asks for both in this way. The reference server leaves out empty groups, and groups by sender only with the order `rank`',
  },
  {
    requests: ['anna POST /search (unknown room)', 'anna POST /search (no category)'],
    at: status,
    what: 'A search in an unknown room or in no category finds nothing',
    reason: 'The specification has no error for these searches',
  },
  {
    requests: [
      'anna GET /rooms/{room}/initialSync?limit=2',
      'cleo GET /rooms/{room}/initialSync?limit=1 (world-readable)',
    ],
    at: ['body.visibility', 'body.presence.*'],
    what: '`/rooms/{roomId}/initialSync` has the visibility of the room; it leaves out offline users, and the presence of users whom the reader shares no room with',
    reason: 'The schema of the operation has the visibility. Presence is shown to users who share rooms',
  },
  {
    requests: ['anna GET /initialSync?limit=2'],
    at: ['body.rooms.[{room}].presence', 'body.rooms.[{room}].receipts'],
    reference: 'absent',
    what: 'Rooms in `/initialSync` have the same fields as `/rooms/{roomId}/initialSync`',
    reason: 'The specification has the same schema for both, `RoomInfo`',
  },
  {
    requests: ['server GET */make_join/{room}/@user:{signing}?ver=11'],
    at: ['body.event.origin'],
    reference: 'absent',
    what: 'Event templates have an `origin`',
    reason: 'The specification requires the field',
  },
];
