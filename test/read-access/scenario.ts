import { eventually } from '../clients/eventually.ts';
import type { TestServer } from '../support/servers/server.ts';
import { enc, TestClient } from '../support/users/test-client.ts';

export const visibilities = ['world_readable', 'shared', 'invited', 'joined'] as const;
export type Visibility = (typeof visibilities)[number];

/** Viewers of the room, by what happened to them between the second and the third phase. */
export const viewerRoles = [
  'stayed',
  'ignoring',
  'left',
  'kicked',
  'banned',
  'forgot',
  'invited',
  'declined',
  'knocking',
  'stranger',
  'guest',
] as const;
export type ViewerRole = (typeof viewerRoles)[number];

/** Viewers who join before the second phase. */
export const joiners: readonly ViewerRole[] = ['stayed', 'ignoring', 'left', 'kicked', 'banned', 'forgot'];

/** Kinds of events in each phase. `late` and `edit` relate to the root event of the first phase. */
export type Kind =
  | 'root'
  | 'reply'
  | 'reaction'
  | 'state'
  | 'member'
  | 'name'
  | 'edit'
  | 'late'
  // The following marks are not events of the room, but activity at the end of the scenario.
  | 'typing'
  | 'receipt'
  | 'presence'
  | 'alias'
  | 'mutual'
  | 'delayed'
  | 'private';

/**
 * The phases of the scenario: before the viewers join, while they are joined, and after some of them have
 * left.
 */
export const phases = [0, 1, 2] as const;
export type Phase = (typeof phases)[number];

/** Returns the mark of an event: a word in the content of the event, which identifies the event. */
export const markOf = (visibility: Visibility, phase: Phase, kind: Kind) =>
  `mk${visibility.replace('_', '')}p${phase}${kind}`;

/** All marks in a text. */
export const marksIn = (text: string): string[] =>
  [...new Set(text.match(/mk[a-z]+p\d[a-z]+/g) ?? [])].sort();

/** A room with its history and its viewers. */
export interface Scenario {
  readonly visibility: Visibility;
  readonly roomId: string;
  /** A world-readable space that contains the room. */
  readonly spaceId: string;
  readonly alias: string;
  readonly clients: Readonly<Record<ViewerRole, TestClient>>;
  readonly owner: TestClient;
  /** Sends all events; the viewer `ignoring` ignores them. */
  readonly sender: TestClient;
  /** Event ids by mark. */
  readonly events: ReadonlyMap<string, string>;
  /** Sync tokens of the owner from before and after the scenario. */
  readonly tokens: { readonly start: string; readonly end: string };
  /** When each phase begins, in milliseconds since the epoch. */
  readonly times: readonly number[];
}

/** Creates the room and sends all its events. */
export async function playScenario(server: TestServer, visibility: Visibility): Promise<Scenario> {
  const register = (name: string) => TestClient.register(server, `${name}-${visibility.replace('_', '')}`);
  const [owner, sender] = [await register('owner'), await register('speaker')];
  const clients = {} as Clients;
  for (const viewer of viewerRoles)
    clients[viewer] = viewer === 'guest' ? await guest(server) : await register(viewer);
  const rooms = await createRooms(owner, sender, visibility);
  const { roomId } = rooms;
  const events = new Map<string, string>();
  const start = (await owner.sync()).next_batch;
  const times: number[] = [];
  const run = { server, visibility, roomId, sender, events, times };
  await playPhase(run, 0);
  for (const joiner of joiners) await clients[joiner].join(roomId);
  const ignored = { ignored_users: { [sender.id]: {} } };
  await clients.ignoring.do(
    'PUT',
    `/user/${enc(clients.ignoring.id)}/account_data/m.ignored_user_list`,
    ignored,
  );
  await playPhase(run, 1);
  await changeMemberships(owner, clients, roomId);
  await playPhase(run, 2);
  const last = events.get(markOf(visibility, 2, 'edit'))!;
  await leaveActivity(server, owner, visibility, roomId, last);
  const end = (await owner.sync()).next_batch;
  return { visibility, ...rooms, clients, owner, sender, events, tokens: { start, end }, times };
}

/** Creates the room with its alias, and the space that contains it. */
async function createRooms(owner: TestClient, sender: TestClient, visibility: Visibility) {
  const alias = `#room-${visibility.replace('_', '')}:test`;
  const roomId = await owner.createRoom({
    room_version: '11',
    preset: 'public_chat',
    room_alias_name: alias.slice(1, alias.indexOf(':')),
    initial_state: [{ type: 'm.room.history_visibility', content: { history_visibility: visibility } }],
    power_level_content_override: { users: { [owner.id]: 100, [sender.id]: 100 } },
  });
  const spaceId = await owner.createRoom({
    preset: 'public_chat',
    creation_content: { type: 'm.space' },
    initial_state: [
      { type: 'm.room.history_visibility', content: { history_visibility: 'world_readable' } },
      { type: 'm.space.child', state_key: roomId, content: { via: ['test'] } },
    ],
  });
  await sender.join(roomId);
  return { roomId, spaceId, alias };
}

/** Changes the memberships of the viewers to those of their roles. */
async function changeMemberships(owner: TestClient, clients: Clients, roomId: string): Promise<void> {
  await owner.setState(roomId, 'm.room.join_rules', { join_rule: 'knock' });
  await clients.knocking.knock(roomId);
  await owner.setState(roomId, 'm.room.join_rules', { join_rule: 'invite' });
  for (const invited of [clients.invited, clients.declined])
    await owner.membership('invite', roomId, invited);
  for (const leaver of [clients.left, clients.declined, clients.forgot]) await leaver.leave(roomId);
  await clients.forgot.membership('forget', roomId);
  await owner.membership('kick', roomId, clients.kicked);
  await owner.membership('ban', roomId, clients.banned);
}

/**
 * Leaves traces of the owner that are not events of the room: typing, a receipt, presence, account data and a delayed
 * event.
 * @param last id of the event that the receipt is for
 */
async function leaveActivity(
  server: TestServer,
  owner: TestClient,
  visibility: Visibility,
  roomId: string,
  last: string,
): Promise<void> {
  await owner.do('PUT', `/rooms/${enc(roomId)}/typing/${enc(owner.id)}`, { typing: true, timeout: 600_000 });
  await owner.do('POST', `/rooms/${enc(roomId)}/receipt/m.read/${enc(last)}`, {});
  await owner.do('PUT', `/presence/${enc(owner.id)}/status`, { presence: 'online', status_msg: 'here' });
  const secret = { mark: markOf(visibility, 2, 'private') };
  await owner.do('PUT', `/user/${enc(owner.id)}/account_data/org.example.private`, secret);
  await owner.do(
    'PUT',
    `/user/${enc(owner.id)}/rooms/${enc(roomId)}/account_data/org.example.private`,
    secret,
  );
  await owner.do('PUT', `/user/${enc(owner.id)}/rooms/${enc(roomId)}/tags/u.${secret.mark}`, {});
  const later = { msgtype: 'm.text', body: markOf(visibility, 2, 'delayed') };
  // The specification has no schema for this response, so the request is not sent by the validating
  // client.
  await fetch(
    `${server.baseUrl}/_matrix/client/v3/rooms/${enc(roomId)}/send/m.room.message/later?org.matrix.msc4140.delay=3600000`,
    {
      method: 'PUT',
      headers: { authorization: `Bearer ${owner.token}` },
      body: JSON.stringify(later),
    },
  );
}

type Clients = Record<ViewerRole, TestClient>;

/** A scenario that is being played; `events` and `times` grow with each phase. */
interface ScenarioRun extends Pick<Scenario, 'visibility' | 'roomId' | 'sender'> {
  readonly server: TestServer;
  readonly events: Map<string, string>;
  readonly times: number[];
}

async function playPhase(run: ScenarioRun, phase: Phase): Promise<void> {
  const { server, visibility, roomId, sender, events, times } = run;
  // Ensures that no event of the previous phase has the same timestamp.
  const previous = Date.now();
  await eventually('the next millisecond', () => Date.now() > previous);
  times.push(Date.now());
  const mark = (kind: Kind) => markOf(visibility, phase, kind);
  const recordEvent = (kind: Kind, eventId: string) => void events.set(mark(kind), eventId);
  const say = (kind: Kind, more: object = {}) =>
    sender.send(roomId, 'm.room.message', { msgtype: 'm.text', body: `findme ${mark(kind)}`, ...more });
  const relatesTo = (rel_type: string, event_id: string, more: object = {}) => ({
    'm.relates_to': { rel_type, event_id, ...more },
  });
  const root = await say('root');
  recordEvent('root', root);
  recordEvent('reply', await say('reply', relatesTo('m.thread', root)));
  const reaction = relatesTo('m.annotation', root, { key: mark('reaction') });
  recordEvent('reaction', await sender.send(roomId, 'm.reaction', reaction));
  recordEvent(
    'state',
    await sender.setState(roomId, 'org.example.state', { mark: mark('state') }, `phase${phase}`),
  );
  recordEvent('name', await sender.setState(roomId, 'm.room.name', { name: mark('name') }));
  const newcomer = await TestClient.register(server, `newcomer${phase}-${visibility.replace('_', '')}`);
  await sender.membership('invite', roomId, newcomer);
  await newcomer.join(roomId);
  const member = { membership: 'join', displayname: mark('member') };
  recordEvent('member', await newcomer.setState(roomId, 'm.room.member', member, newcomer.id));
  const first = events.get(markOf(visibility, 0, 'root'));
  if (phase === 0 || first === undefined) return;
  recordEvent('late', await say('late', relatesTo('m.thread', first)));
  const newContent = { msgtype: 'm.text', body: `findme ${mark('edit')}` };
  recordEvent('edit', await say('edit', { 'm.new_content': newContent, ...relatesTo('m.replace', first) }));
}

async function guest(server: TestServer): Promise<TestClient> {
  const query = { kind: 'guest' };
  const { body } = await server.api('POST', '/_matrix/client/v3/register', { query, body: {} });
  const [userId, deviceId] = [String(body['user_id']), String(body['device_id'])];
  return new TestClient(server, { userId, deviceId, token: String(body['access_token']) });
}
