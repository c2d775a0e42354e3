import { createHmac } from 'node:crypto';
import { formSecret } from '../support/servers/optional-features.ts';

/** Values by the name of a parameter or field; a field with the value `undefined` is left out. */
export type Values = Readonly<Record<string, unknown>>;

/** Ids of what the requests are about. */
export interface Subjects {
  readonly roomId: string;
  /** A message in the room. */
  readonly eventId: string;
  readonly userId: string;
  /** A user who is not in the room. */
  readonly otherUserId: string;
  /** A sync token of the user. */
  readonly since: string;
  /** The version of the user's key backup. */
  readonly backupVersion: string;
  /** A client that is registered with the authorization server. */
  readonly clientId: string;
}

/** Values of the fields of a route. */
export interface AcceptedValues {
  /** Values of fields at any depth. */
  readonly everywhere: Values;
  /** Values for this route only: of query parameters, and of top-level fields of the body, which its schema need not name. */
  readonly ofRoute: Values;
}

/**
 * Returns a function that returns the values of a route for fields that do not accept every value of the type in their
 * schema. Each call returns other names of new users and devices.
 */
export function acceptedValues(subjects: Subjects): (routeName: string) => AcceptedValues {
  const everywhere = valuesOfAllRoutes(subjects);
  let count = 0;
  return (routeName) => {
    const [method, path = ''] = routeName.split(' ');
    const route = `${method} ${path.replace(/^\/_proto\/client\/v3/, '')}`;
    const ofRoute = valuesByRoute(subjects, count++)[route];
    return { everywhere, ofRoute: ofRoute ?? {} };
  };
}

const valuesOfAllRoutes = ({ roomId, eventId, otherUserId }: Subjects): Values => ({
  type: 'org.test',
  state_key: 'key',
  room_id: roomId,
  user_id: otherUserId,
  event_id: eventId,
  'm.fully_read': eventId,
  'm.read': eventId,
  'm.read.private': eventId,
  thread_id: 'main',
  room_version: '11',
  new_version: '11',
  ver: '11',
  v: '1.0',
  alias: '#alias:a.test',
  room_alias: '#alias:a.test',
  redirectUrl: 'https://app.example/',
  medium: 'email',
  address: 'someone@a.test',
  email: 'someone@a.test',
  country: 'GB',
  phone_number: '07700900123',
  next_link: 'https://a.test/next',
  id_server: 'id.test',
  localpart: 'target',
  since: undefined,
  logout_devices: false,
  admin_unsafely_bypass_quarantine: false,
});

/** Returns `count` entries. */
const entries = (count: number, entry: (index: number) => readonly [string, unknown]) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => entry(index)));

const signature = (user: string) => createHmac('sha256', formSecret).update(user).digest('hex');

/** The values by route; `/_proto/client/v3` is left out of the paths. @param count differs between the calls */
const valuesByRoute = (
  { eventId, userId, otherUserId, since, backupVersion, clientId }: Subjects,
  count: number,
): Readonly<Record<string, Values>> => ({
  'POST /createRoom': {
    room_alias_name: undefined,
    creation_content: {},
    power_level_content_override: {},
    invite_3pid: undefined,
    // `rc_invites` limits the number of invites: by default to ten at once.
    invite: Array.from({ length: 10 }, (_, index) => `@invited${index}:a.test`),
  },
  'POST /account/password': { new_password: 'correct horse', auth: undefined },
  'POST /rooms/:roomId/join': { third_party_signed: undefined },
  'POST /join/:roomIdOrAlias': { third_party_signed: undefined },
  'POST /rooms/:roomId/upgrade': { additional_creators: undefined },
  'POST /login': {
    type: 'm.login.password',
    identifier: { type: 'm.id.user', user: 'alice' },
    password: 'correct horse',
    device_id: 'DRIVEN',
    initial_device_display_name: 'Driven',
  },
  'POST /register': {
    username: `new${count}`,
    password: 'correct horse',
    auth: { type: 'm.login.dummy' },
    initial_device_display_name: 'Driven',
  },
  'GET /register/available': { username: `new${count}` },
  'PUT /devices/:deviceId': { display_name: 'Driven' },
  'POST /pushers/set': {
    kind: 'http',
    lang: 'en',
    data: { url: 'https://push.test/_matrix/push/v1/notify' },
  },
  'PUT /profile/:userId/:keyName': { displayname: 'Alice' },
  'PUT /sendToDevice/:eventType/:txnId': { messages: { [userId]: { '*': { text: 'x'.repeat(50_000) } } } },
  'PUT /pushrules/global/:kind/:ruleId': { actions: ['notify'] },
  'PUT /pushrules/global/:kind/:ruleId/actions': { actions: ['notify'] },
  'POST /publicRooms': { third_party_instance_id: undefined },
  'GET /keys/changes': { from: since, to: since },
  'POST /keys/upload': {
    device_keys: undefined,
    one_time_keys: entries(1_000, (index) => [
      `curve25519:A${index}`,
      Buffer.alloc(32, `${index}`).toString('base64').replace(/=+$/, ''),
    ]),
    fallback_keys: entries(20, (index) => [`org.test.algorithm${index}:A`, 'x'.repeat(4_000)]),
    'org.matrix.msc2732.fallback_keys': undefined,
  },
  'POST /room_keys/version': { algorithm: 'm.megolm_backup.v1.curve25519-aes-sha2' },
  'PUT /room_keys/version/:version': {
    algorithm: 'm.megolm_backup.v1.curve25519-aes-sha2',
    version: undefined,
  },
  'GET /room_keys/keys': { version: backupVersion },
  'GET /room_keys/keys/:roomId': { version: backupVersion },
  'GET /room_keys/keys/:roomId/:sessionId': { version: backupVersion },
  'DELETE /room_keys/keys': { version: backupVersion },
  'DELETE /room_keys/keys/:roomId': { version: backupVersion },
  'DELETE /room_keys/keys/:roomId/:sessionId': { version: backupVersion },
  'PUT /room_keys/keys': {
    version: backupVersion,
    rooms: entries(2_000, (index) => [
      `!room${index}:a.test`,
      { sessions: Object.fromEntries([backedUpKey(index)]) },
    ]),
  },
  'PUT /room_keys/keys/:roomId': { version: backupVersion, sessions: entries(2_000, backedUpKey) },
  'PUT /room_keys/keys/:roomId/:sessionId': { version: backupVersion, ...backedUpKey(0)[1] },
  'PUT /rooms/:roomId/delayed_event/:eventType/:txnId': {
    delay: 3_600_000,
    delay_ms: undefined,
    state_key: undefined,
  },
  'POST /_proto/client/v1/delayed_events/:delayId': { action: 'restart' },
  'PUT /_proto/client/unstable/io.element.msc4306/rooms/:roomId/thread/:rootId/subscription': {
    automatic: undefined,
  },
  'POST /keys/device_signing/upload': {
    master_key: undefined,
    self_signing_key: undefined,
    user_signing_key: undefined,
  },
  'POST /_proto/client/unstable/org.matrix.msc3814.v1/dehydrated_device/:deviceId/events': {
    next_batch: undefined,
  },
  'PUT /_proto/federation/v1/3pid/onbind': { mxid: userId },
  'POST /_server/admin/v1/background_updates/start_job': { job_name: 'populate_stats_process_rooms' },
  'POST /_server/admin/v2/users/:userId/devices': { device_id: 'DRIVEN' },
  'PUT /_server/admin/v2/users/:userId/devices/:deviceId': { display_name: 'Device' },
  'PUT /_server/admin/v1/users/:userId/admin': { admin: false },
  'POST /_server/admin/v1/purge_history/:roomId': {
    purge_up_to_event_id: undefined,
    purge_up_to_ts: Date.now(),
  },
  'DELETE /_server/admin/v1/rooms/:roomId': { new_room_user_id: undefined },
  'DELETE /_server/admin/v2/rooms/:roomId': { new_room_user_id: undefined },
  'POST /_server/client/oauth2/device': {
    client_id: clientId,
    scope: `urn:matrix:client:api:* urn:matrix:client:device:DRIVEN${count}`,
  },
  'POST /_server/client/oauth2/token': { client_id: clientId, grant_type: 'refresh_token' },
  'GET /_proto/client/v1/media/preview_url': { url: 'https://preview.test/' },
  'GET /_proto/media/v3/preview_url': { url: 'https://preview.test/' },
  'POST /_server/admin/v1/media/delete': { before_ts: 1_600_000_000_000 },
  'POST /_server/admin/v1/purge_media_cache': { before_ts: 1_600_000_000_000 },
  'GET /_server/admin/v1/statistics/users/media': { from_ts: 1_000, until_ts: 2_000 },
  'GET /_server/admin/v1/statistics/days': { from_day: '2026-01-01', to_day: '2026-01-31' },
  'GET /_server/mas/is_localpart_available': { localpart: `new${count}` },
  'GET /_proto/consent': { v: '1.0', u: userId, h: signature(userId) },
  'POST /_proto/consent': { u: userId, h: signature(userId) },
  'POST /_server/client/oauth2/registration': {
    client_uri: 'https://app.example/',
    redirect_uris: ['https://app.example/callback'],
    client_name: 'App',
  },
  'POST /_server/client/saml2/authn_response': {
    RelayState: 'https://app.example/',
    SAMLResponse: Buffer.from(`<a>${samlElement.repeat(4_900)}</a>`).toString('base64'),
  },
  'POST /_proto/federation/v1/get_missing_events/:roomId': { latest_events: [eventId] },
  'GET /_proto/federation/v1/backfill/:roomId': { v: eventId },
  'GET /_proto/federation/v1/query/profile': { user_id: userId },
  'POST /_proto/federation/v1/publicRooms': { third_party_instance_id: undefined },
  'POST /_proto/key/v2/query': {
    server_keys: { 'a.test': entries(100, (index) => [`ed25519:${index}`, {}]) },
  },
  'POST /_server/admin/v1/send_server_notice': notice(otherUserId),
  'PUT /_server/admin/v1/send_server_notice/:txnId': notice(otherUserId),
  'POST /_server/admin/v1/send_server_notice_to_all': {
    state_key: null,
    type: 'm.room.message',
    content: { msgtype: 'm.text', body: 'x'.repeat(20_000) },
  },
  'POST /_server/admin/v1/registration_tokens/new': { token: undefined, length: 16, expiry_time: null },
  'PUT /_server/admin/v1/registration_tokens/:token': { expiry_time: null },
  'PUT /_server/admin/v2/users/:userId': {
    password: 'correct horse',
    displayname: 'Target',
    admin: false,
    avatar_url: undefined,
    external_ids: undefined,
    user_type: undefined,
    deactivated: false,
    locked: false,
    threepids: undefined,
  },
  'POST /_server/admin/v1/experimental_features/:userId': { features: { msc3881: true } },
  'PUT /_server/admin/v1/experimental_features/:userId': { features: { msc3881: true } },
  'GET /_server/admin/v1/username_available': { username: `new${count}` },
  'POST /_server/mas/provision_user': {
    unset_displayname: undefined,
    unset_avatar_url: undefined,
    unset_emails: undefined,
    set_displayname: 'Target',
    set_avatar_url: 'mxc://a.test/picture',
    set_emails: undefined,
  },
  'POST /_server/mas/set_displayname': { displayname: 'Target' },
  'POST /_server/mas/upsert_device': { device_id: 'DEVICE', display_name: 'Device' },
  'POST /_server/mas/update_device_display_name': { device_id: 'DEVICE', display_name: 'Device' },
  'POST /_server/mas/delete_device': { device_id: 'DELETED' },
});

/** Has two tags and three attributes. 4,900 such elements have nearly as many tags as a SAML response may have. */
const samlElement = '<b c="" d="" e="">group group group</b>';

const notice = (userId: string): Values => ({
  user_id: userId,
  type: 'm.room.message',
  state_key: undefined,
  content: { msgtype: 'm.text', body: 'x'.repeat(20_000) },
});

/** Returns a key of a session for the backup, with its session id. */
function backedUpKey(index: number): readonly [string, Values] {
  const session_data = { ciphertext: 'x'.repeat(400), ephemeral: 'x'.repeat(43), mac: 'x'.repeat(11) };
  return [`session${index}`, { first_message_index: 0, forwarded_count: 0, is_verified: true, session_data }];
}
