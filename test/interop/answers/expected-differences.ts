/** A difference between the answers of both servers that is expected to stay. In patterns `*` stands for any text. */
export interface ExpectedDifference {
  /** Patterns of the requests: user, method and path with the note. */
  readonly requests: readonly string[];
  /** Patterns of the places where the answers differ. */
  readonly at: readonly string[];
  /** Patterns of what the servers answer there, as JSON. */
  readonly hearth?: string;
  readonly reference?: string;
  /** What differs and why it stays, for readers: cells of a table in docs/interoperability.md. */
  readonly what: string;
  readonly reason: string;
}

const everywhere = ['*'];
const [errcode, status] = [['body.errcode'], ['status']];
const sliding = 'anna POST /_matrix/client/unstable/org.matrix.simplified_msc3575/sync*';

/** Differences between the errors of malformed requests. */
const errors: readonly ExpectedDifference[] = [
  {
    requests: everywhere,
    at: errcode,
    reference: '"M_UNKNOWN"',
    what: 'The errcode says what is wrong; the reference server has `M_UNKNOWN`',
    reason: '"Common error codes" names a code for the case',
  },
  {
    requests: everywhere,
    at: status,
    reference: '500',
    what: 'Malformed requests have a 4xx status; the reference server has 500 for some',
    reason: 'The mistake is on the side of the client',
  },
  {
    requests: everywhere,
    at: errcode,
    hearth: '"M_BAD_JSON"',
    reference: '"M_MISSING_PARAM"',
    what: 'A body without a required member is `M_BAD_JSON`, not `M_MISSING_PARAM`',
    reason: '"Common error codes": "missing required keys" (decision 0119)',
  },
  {
    requests: ['anonymous POST /login (no *)', 'anonymous POST /login (a number as password)'],
    at: errcode,
    hearth: '"M_MISSING_PARAM"',
    what: 'A login without identifier or password is `M_MISSING_PARAM`, not `M_INVALID_PARAM`',
    reason: 'The value is missing, not invalid',
  },
  {
    requests: [
      'server PUT */exchange_third_party_invite/{room} (empty)',
      'anonymous POST /register?kind=unknown',
      'anna GET /pushrules/global/unknown/',
    ],
    at: errcode,
    hearth: '"M_INVALID_PARAM"',
    what: 'An invalid value is `M_INVALID_PARAM`; the reference server has `M_MISSING_PARAM` or `M_UNRECOGNIZED`',
    reason: 'The value is there, and the path is known',
  },
  {
    requests: [
      'server PUT */send/4 (wrong type)',
      'server PUT */send/6 (51 events)',
      'server GET */backfill/{room}?v={message}',
      'server GET */event/$unknown',
      'anna GET /thirdparty/protocol/unknown',
      'anonymous GET /.well-known/matrix/*',
    ],
    at: ['body', 'body.errcode', 'body.error'],
    what: 'Errors have an errcode; the reference server leaves it or the whole body out for some requests',
    reason: '"Standard error response"',
  },
  {
    requests: [
      'anonymous POST /login (unknown type)',
      'server PUT */invite/{room}/$unknown (unknown version)',
    ],
    at: ['body.errcode', 'body.room_version'],
    what: 'Unknown login types are `M_UNKNOWN`, unsupported room versions of invites `M_INCOMPATIBLE_ROOM_VERSION`',
    reason: 'The descriptions of the operations name these codes',
  },
  {
    requests: [
      'anna POST /createRoom (unknown visibility)',
      'anna PUT /rooms/{room}/typing/{anna} (wrong type)',
      'anna PUT /user/{anna}/rooms/{room}/tags/u.two (order of a wrong type)',
      'ben POST /keys/claim (empty)',
      'ben POST /keys/query (malformed user id)',
      'anna PUT /sendToDevice/org.example.x/5 (malformed user id)',
      'server POST */user/keys/query (empty)',
      'server POST */user/keys/claim (empty)',
      'server POST */get_missing_events/{room} (empty)',
      'anna POST /account/password (empty)',
      'anna POST /keys/device_signing/upload (wrong type)',
      'anna GET */hierarchy?limit=0',
      'anna GET */thumbnail/{image-id}?width=0&height=0',
      'anna GET /rooms/%FF/state',
    ],
    at: status,
    hearth: '400',
    what: 'Bodies, paths and parameters that the schema of a request excludes are 400 before anything else is looked at',
    reason: 'The reference server accepts some of them, or finds them later',
  },
  {
    requests: ['anna GET /user/{anna}/rooms/{room}/tags (set)'],
    at: ['body.tags.u.two'],
    what: 'So there is no tag whose order is a text',
    reason: 'The specification has numbers only',
  },
  {
    requests: [
      'anna POST /createRoom (the creator invited)',
      'server PUT */send_join/{room}/$unknown (event without signatures)',
      'server PUT */invite/{room}/$unknown (no invite)',
      'anna GET */thumbnail/{image-id}?width=32&height=32&method=unknown',
    ],
    at: status,
    hearth: '400',
    what: 'A request that contradicts itself is 400, also where 403 or 404 would apply to one that does not',
    reason: 'The order of the checks is free',
  },
  {
    requests: [
      'anna PUT /directory/room/#third:{server} (unknown room)',
      'anna PUT /directory/room/#third:{server} (malformed room id)',
      'anna PUT /directory/list/room/!unknown:{server}',
      'anna GET */room_summary/!unknown:{server}',
      'anna GET /user/{anna}/filter/not-a-filter',
      'anna POST /rooms/!unknown:{server}/forget',
      'server PUT */send_join/!unknown:{server}/$unknown',
      'server GET */state_ids/!unknown:{server}?event_id={message}',
    ],
    at: status,
    hearth: '404',
    what: 'Unknown rooms and filters are 404; the reference server has 200, 400 or 403 for some',
    reason: 'They do not exist',
  },
  {
    requests: [
      'anna PUT /rooms/{room}/send/m.room.message/7 (too large)',
      'anna PUT /devices/{anna-device} (long name)',
    ],
    at: status,
    hearth: '413',
    what: '`M_TOO_LARGE` has the status 413, not 400',
    reason: 'As elsewhere in the specification',
  },
  {
    requests: [
      "anna PUT /profile/{ben}/displayname (another user's)",
      "anna PUT /rooms/{room}/typing/{ben} (another user's)",
      'anna POST /rooms/{room}/kick (malformed user id)',
      'server GET */make_join/{room}/malformed?ver=11',
    ],
    at: status,
    hearth: '403',
    reference: '400',
    what: 'What is not allowed is 403, not 400',
    reason: '`M_FORBIDDEN` has the status 403',
  },
  {
    requests: ['anna PUT /rooms/{room}/send/m.room.message/2 (empty)'],
    at: status,
    what: 'Messages may lack `msgtype` and `body`',
    reason: 'Contents of messages are up to clients; those of state events are checked (decision 0113)',
  },
  {
    requests: ['anna POST /rooms/{room}/receipt/m.read/{message} (no body)'],
    at: status,
    what: 'A receipt needs no body',
    reason: 'The body has no required member, and old clients send none',
  },
  {
    requests: ['anna POST /createRoom (malformed power levels)'],
    at: errcode,
    what: 'Whatever is wrong with the initial state is `M_INVALID_ROOM_STATE`',
    reason: 'Decision 0119',
  },
  {
    requests: ['*(banned)', 'ben POST /join/{room} (banned)'],
    at: errcode,
    hearth: '"M_FORBIDDEN"',
    reference: '"M_BAD_STATE"',
    what: 'Inviting, kicking or joining as a banned user is `M_FORBIDDEN`, not `M_BAD_STATE`',
    reason: 'The authorization rules forbid it; `M_BAD_STATE` is the answer to a wrong unban',
  },
  {
    requests: ['anna POST /rooms/{room}/unban (never banned)'],
    at: status,
    what: 'Unbanning a user who was never in the room is refused like every other wrong unban',
    reason: 'The description of `M_BAD_STATE`',
  },
  {
    requests: [
      'ben POST /rooms/{room}/leave (no member)',
      'cleo GET */relations/{m1}',
      'cleo GET */context/{m2}?limit=0 (world-readable)',
      'ben PUT /rooms/{room}/redact/$unknown/r4',
    ],
    at: status,
    what: 'What a user may not see is answered as what does not exist',
    reason: 'The answer must not say which rooms and events exist',
  },
];

/** Differences about accounts, devices and keys. */
const accounts: readonly ExpectedDifference[] = [
  {
    requests: [
      "anna DELETE /devices/{ben-device} (another user's, authenticated)",
      "anna POST /delete_devices (another user's, authenticated)",
    ],
    at: status,
    hearth: '403',
    reference: '200',
    what: 'The deletion of a device of another user is 403 after the confirmation',
    reason: 'The device is not deleted (decision 0119)',
  },
  {
    requests: ['anonymous GET /login'],
    at: ['body.flows.[m.login.application_service]'],
    what: 'The login of application services is not offered without application services',
    reason: 'No client could use it',
  },
  {
    requests: ['anonymous POST /login (unknown login token)'],
    at: status,
    what: 'Logins with tokens are unknown while they are off',
    reason: '`GET /login` does not offer them',
  },
  {
    requests: ['*'],
    at: ['body.completed'],
    hearth: '[]',
    what: 'Interactive authentication always has the list of completed stages',
    reason: 'Example of the specification',
  },
  {
    requests: ['anonymous POST /refresh (unknown token)'],
    at: ['body.soft_logout'],
    what: 'A refused refresh token has `soft_logout`',
    reason: '"Soft logout"',
  },
  {
    requests: ['anonymous POST /register (unknown stage)', 'anonymous POST /register (unknown session)'],
    at: status,
    what: 'A failed stage of a registration is 401 with the flows, so that clients can go on',
    reason: '"User-interactive authentication"',
  },
  {
    requests: ['anonymous POST /register?kind=guest'],
    at: errcode,
    what: 'Guests who are not allowed get `M_FORBIDDEN`',
    reason: 'Nothing in the request is unknown',
  },
  {
    requests: ['anna GET /thirdparty/*', 'server PUT */3pid/onbind (empty)', 'anna GET /voip/turnServer'],
    at: status,
    what: 'Operations that are not served or not configured are 404; operations of version 1.19 are served',
    reason:
      'Clients take 404 `M_UNRECOGNIZED` as the sign that a feature is missing (decision 0119 for TURN)',
  },
  {
    requests: ['anna GET /pushers (set)'],
    at: ['body.pushers.[0].org.matrix.msc3881.*'],
    what: 'Pushers show their device, and whether they are enabled',
    reason: 'MSC3881, which the reference server has switched off by default',
  },
  {
    requests: ['anna POST /pushers/set (unknown kind)'],
    at: status,
    what: 'A pusher of an unknown kind is refused',
    reason: 'It would never notify its user',
  },
  {
    requests: ['anna GET /admin/whois/{anna}'],
    at: ['body.devices.'],
    what: '`whois` lists the connections of the last minutes after a minute, by device; the reference server lists all under an empty device id',
    reason: 'Addresses are written once a minute',
  },
  {
    requests: ['anonymous POST /login (deactivated)'],
    at: errcode,
    what: 'Deactivated users get `M_USER_DEACTIVATED`',
    reason: 'Description of `POST /login`',
  },
  {
    requests: ['anna GET /profile/{cleo} (deactivated)'],
    at: status,
    what: 'Deactivated users have no profile',
    reason: 'Their data is deleted',
  },
  {
    requests: ['anna GET /devices*'],
    at: ['*user_id'],
    hearth: 'absent',
    what: 'Devices do not repeat the id of their user',
    reason: 'Not in the schema',
  },
  {
    requests: ['ben GET /devices (still there)'],
    at: ['*user_id'],
    hearth: 'absent',
    what: 'The same for another user',
    reason: 'Not in the schema',
  },
  {
    requests: ['anna GET /profile/{anna}/avatar_url', 'anna POST /search (with context)'],
    at: ['*avatar_url'],
    hearth: 'absent',
    reference: 'null',
    what: 'An unset avatar is absent, not null',
    reason: 'The schema has a string or nothing (decision 0119)',
  },
  {
    requests: ['anna GET /profile/{anna} (unset)', 'anna GET /profile/{anna}/org.example.field (deleted)'],
    at: status,
    what: 'Unset profiles and fields are 200 without them, not 404',
    reason: 'Clients log 404 as an error (decision 0119)',
  },
  {
    requests: ['anna GET /user/{anna}/account_data/org.example.x (emptied)'],
    at: status,
    what: 'Account data that was set to `{}` is deleted',
    reason: 'MSC3391',
  },
  {
    requests: ['anna PUT /user/{anna}/account_data/m.ignored_user_list (themselves)'],
    at: status,
    what: 'Users may put themselves on the list of ignored users',
    reason: 'It has no effect; the specification does not forbid it',
  },
  {
    requests: ['*POST*keys/query*'],
    at: ['*.unsigned', 'body.user_signing_keys'],
    hearth: 'absent',
    what: 'Key queries leave out empty members: `unsigned` of devices without a name, user-signing keys for other servers',
    reason: 'Both are optional',
  },
  {
    requests: ['anna POST /keys/signatures/upload*'],
    at: ['body.failures.*'],
    what: 'Refused signatures are described by errcode and error only',
    reason: 'Schema of the operation',
  },
  {
    requests: ['anna PUT /room_keys/keys/!r:example.org/S1?version=99'],
    at: status,
    what: 'Writing to a version of the backup that is not the current one is 403 `M_WRONG_ROOM_KEYS_VERSION`, also if it never existed',
    reason: 'Clients find the current version in the error',
  },
  {
    requests: ['server GET */user/devices/*'],
    at: ['body.master_key', 'body.self_signing_key'],
    hearth: 'absent',
    reference: 'null',
    what: 'Cross-signing keys that do not exist are absent, not null',
    reason: 'Schema of the operation',
  },
  {
    requests: ['anna GET /notifications*'],
    at: ['body.next_token'],
    hearth: 'absent',
    reference: 'null',
    what: 'The last page of notifications has no `next_token`, not null',
    reason: 'Schema of the operation',
  },
];

/** Differences about push rules. */
const pushRules: readonly ExpectedDifference[] = [
  {
    requests: everywhere,
    at: ['*.actions*[highlight]'],
    what: 'The predefined push rules do not set the tweak `highlight` to false',
    reason: 'The specification left it out, since it is the default',
  },
  {
    requests: everywhere,
    at: ['*[.org.matrix.msc3930.rule.*]', '*[.io.element.msc4306.rule.*]'],
    reference: 'absent',
    what: 'Rules for polls (MSC3930) and thread subscriptions (MSC4306) exist',
    reason: 'The reference server has them in its experimental features',
  },
  {
    requests: everywhere,
    at: ['*[.im.vector.jitsi]'],
    hearth: 'absent',
    what: 'There is no rule for Jitsi conferences',
    reason: 'Not in the specification',
  },
  {
    requests: ['anna PUT /pushrules/global/override/fifth (no conditions)'],
    at: status,
    what: 'Conditions may be left out of a push rule',
    reason: 'The schema does not require them; the rule then matches every event',
  },
  {
    requests: ['anna GET /pushrules/global/ (changed)'],
    at: ['body.override.[fifth]'],
    what: 'So the rule without conditions exists',
    reason: 'As above',
  },
];

/** Differences about rooms. */
const rooms: readonly ExpectedDifference[] = [
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
    reason: 'Schema of stripped state; nothing there is needed',
  },
  {
    requests: everywhere,
    at: ['*.unsigned.prev_content', '*.unsigned.prev_sender'],
    reference: 'absent',
    what: 'State in `/members` and `/initialSync` has the previous content, as elsewhere',
    reason: '`unsigned` of the specification',
  },
  {
    requests: everywhere,
    at: ['*.unsigned.membership', '*.unsigned.transaction_id'],
    reference: 'absent',
    what: 'Events in threads, bundled aggregations and `/initialSync` have the membership and transaction id, as elsewhere',
    reason: '`unsigned` of the specification',
  },
  {
    requests: everywhere,
    at: ['*m.call.invite'],
    hearth: 'absent',
    what: 'Public rooms have no own power level for calls',
    reason: 'Not in the specification; operators can set it (`default_power_level_content_override`)',
  },
  {
    requests: everywhere,
    at: ['*.m.topic.m.text.[0].mimetype'],
    reference: 'absent',
    what: 'The topic of a new room names its type, `text/plain`',
    reason: 'Description of `POST /createRoom`',
  },
  {
    requests: ['anna GET /rooms/{private}/state', 'anna GET /capabilities'],
    at: ['*room_version', '*.content.creator', '*.m.room_versions.default'],
    what: 'The default room version is 10, not 11',
    reason: 'Requirement document (`default_room_version`)',
  },
  {
    requests: ['anna GET /rooms/{upgraded}/state'],
    at: ['body.[m.room.guest_access|]'],
    what: 'An upgraded room admits guests only if the old one did',
    reason: 'The upgrade copies the state',
  },
  {
    requests: ['anna POST /publicRooms (unknown network)'],
    at: status,
    what: 'An unknown network has an empty directory',
    reason: 'The specification has no error for it',
  },
  {
    requests: ['cleo GET /rooms/{room}/joined_members (world-readable)'],
    at: status,
    what: '`/joined_members` is for members, also in world-readable rooms',
    reason: 'Description of the operation',
  },
  {
    requests: ['anna POST /search*'],
    at: ['*.context', '*.groups'],
    what: 'Search results have a context only when asked, and groups always when asked',
    reason: 'Schema of the operation; the reference server groups only by rank',
  },
  {
    requests: ['anna POST /search (unknown room)', 'anna POST /search (no category)'],
    at: status,
    what: 'A search in an unknown room or in no category finds nothing',
    reason: 'The specification has no error for it',
  },
  {
    requests: [
      'anna GET /rooms/{room}/initialSync?limit=2',
      'cleo GET /rooms/{room}/initialSync?limit=1 (world-readable)',
    ],
    at: ['body.visibility', 'body.presence.*'],
    what: '`/rooms/{roomId}/initialSync` has the visibility; it leaves out offline users, and the presence of users whom the reader shares no room with',
    reason: 'Schema of the operation; presence is shown to users who share rooms',
  },
  {
    requests: ['anna GET /initialSync?limit=2'],
    at: ['body.rooms.[{room}].presence', 'body.rooms.[{room}].receipts'],
    reference: 'absent',
    what: 'Rooms in `/initialSync` have the same members as `/rooms/{roomId}/initialSync`',
    reason: 'Schema "RoomInfo"',
  },
  {
    requests: ['server GET */make_join/{room}/@user:{signing}?ver=11'],
    at: ['body.event.origin'],
    reference: 'absent',
    what: 'Event templates have an `origin`',
    reason: 'The specification requires it',
  },
];

/** Differences of syncs. */
const syncs: readonly ExpectedDifference[] = [
  {
    requests: ['* GET /sync?*'],
    at: ['*.summary.m.joined_member_count', '*.summary.m.invited_member_count', '*.summary'],
    what: 'The counts of members come to all clients when they change; the reference server has them only for lazy loading',
    reason: 'Description of `summary`',
  },
  {
    requests: ['ben GET /sync?*'],
    at: ['*.timeline.prev_batch'],
    hearth: 'absent',
    what: 'An empty timeline has no `prev_batch`',
    reason: 'There is no event that it could be before',
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
    what: 'Who is online or was active is found a little earlier or later; `last_active_ago` needs a sync or a change of presence',
    reason: 'The specification leaves the timing open (decision 0021)',
  },
  {
    requests: ['* GET /sync?*'],
    at: ['body.device_lists', 'body.device_lists.*'],
    what: 'Creating a room does not name the creator in `device_lists`, and `left` is there when `changed` is',
    reason: 'No user was met',
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

/** Differences about media and the server itself. */
const others: readonly ExpectedDifference[] = [
  {
    requests: ['anna GET */media/*'],
    at: ['headers.content-security-policy'],
    what: 'Media have the content security policy of the specification, thumbnails too',
    reason: '"Serving inline content"',
  },
  {
    requests: ['anna GET */media/*'],
    at: ['headers.cache-control'],
    what: 'Media are cached privately',
    reason: 'Downloads need an access token',
  },
  {
    requests: ['anna GET */media/download/*'],
    at: ['headers.content-type', 'body'],
    what: 'A text has the media type that it was uploaded with, without an added charset',
    reason: 'Description of the operation',
  },
  {
    requests: ['anna GET */media/thumbnail/*'],
    at: ['headers.content-disposition'],
    what: 'Thumbnails have a file name',
    reason: 'Recommended by the specification',
  },
  {
    requests: ['anonymous GET /_matrix/client/versions'],
    at: ['body.versions.*', 'body.unstable_features.*'],
    what: 'Versions 1.13 to 1.19 are claimed, and those before 1.1 are not; the lists of unstable features differ',
    reason: 'Decision 0100 and docs/client-gates.md',
  },
  {
    requests: ['anna GET /capabilities'],
    at: ['body.capabilities.*'],
    what: 'Capabilities name what is supported and allowed here',
    reason: 'They differ with the features',
  },
  {
    requests: ['anonymous * /_matrix/key/v2/query*'],
    at: ['body.server_keys.*'],
    what: 'The notary also answers for its own keys',
    reason: 'Nothing in the specification excludes them',
  },
  {
    requests: ['* GET */federation/v1/version'],
    at: ['body.server.*'],
    what: 'Name and version of the program',
    reason: 'They are what they are',
  },
];

/** All expected differences. */
export const expectedDifferences: readonly ExpectedDifference[] = [
  ...errors,
  ...accounts,
  ...pushRules,
  ...rooms,
  ...syncs,
  ...others,
];
