import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { authorize } from '../../src/federation-client/requests/request-signature.ts';
import type { DatabaseOptions } from '../../src/kernel/database/index.ts';
import { ScriptedMember } from '../support/other-servers/scripted-member.ts';
import type { ScriptedServer } from '../support/other-servers/scripted-server.ts';
import { type FederatedServer, SeveralServers } from '../support/other-servers/several-servers.ts';
import type { ConfigurationOverrides } from '../support/servers/server.ts';
import { enc, type TestClient } from '../support/users/test-client.ts';

/** Number of rooms of the user, besides the large room, the busy room and the space. */
const smallRooms = 400;

/** Number of large state events and of large messages in the large room. */
const largeEvents = 300;

/** Number of members of the busy room. */
export const members = 300;

/** Characters of a text that makes an event about as large as an event may be. */
const largeText = 'x'.repeat(60_000);

/** A homeserver with much stored data, and the user and the other server that request it. */
export interface StoredData {
  readonly user: TestClient;
  /** A room with large state events and large messages. */
  readonly largeRoom: string;
  /** The last message of the large room. */
  readonly lastLargeMessage: string;
  /** A room with many members and an event with many replies. */
  readonly busyRoom: string;
  /** The event with many replies. */
  readonly busyEvent: string;
  /** A room whose children are the small rooms. */
  readonly space: string;
  /** A sync token from before the large room and the busy room were filled. */
  readonly early: string;
  /** Sends a request of the user and reads its response without keeping it. */
  send(request: StoredDataRequest): Promise<ReadResponse>;
  /** Sends a request of the other server. */
  sendAsServer(request: StoredDataRequest): Promise<ReadResponse>;
  stop(): Promise<void>;
}

export interface StoredDataRequest {
  readonly method?: string;
  /** The path with the query. */
  readonly path: string;
  readonly body?: unknown;
}

export interface ReadResponse {
  readonly status: number;
  readonly bytes: number;
  /** The first characters of the body. */
  readonly start: string;
}

/** Starts a server and stores megabytes of state, messages, account data, push rules and to-device messages. */
export async function openStoredData(kind: DatabaseOptions['kind']): Promise<StoredData> {
  const several = new SeveralServers(kind);
  const server = await several.homeserver('a.test', { config: { http: plainHttp, ...readableData } });
  const other = await several.scripted('other.test');
  const user = await server.registerClient('alice');
  const space = await user.createRoom({ preset: 'public_chat', creation_content: { type: 'm.space' } });
  await createSmallRooms(user, space);
  const largeRoom = await user.createRoom({ preset: 'public_chat', room_version: '11' });
  await (await ScriptedMember.join(other, 'a.test', largeRoom, '@guest:other.test')).say('its key is known');
  const early = (await user.sync(undefined, { filter: noRoomEvents })).next_batch;
  const lastLargeMessage = await fillLargeRoom(user, largeRoom);
  const { busyRoom, busyEvent } = await createBusyRoom(server, user);
  await storeAccountDataAndPushRules(user);
  await storeToDeviceMessages(server, user);
  return {
    user,
    largeRoom,
    lastLargeMessage,
    busyRoom,
    busyEvent,
    space,
    early,
    send: (sent) => read(server, sent, `Bearer ${user.token}`),
    sendAsServer: (sent) => read(server, sent, authorizationOf(other, sent)),
    stop: () => several.stop(),
  };
}

/**
 * Requests are sent to the listener without TLS, because this process is also their sender and encryption would count
 * twice. The other server needs the listener with TLS.
 */
const plainHttp = {
  listeners: [false, true].map((tls) => ({
    port: 0,
    type: 'http',
    bind_addresses: ['127.0.0.1'],
    tls,
    resources: [{ names: ['client', 'federation'] }],
  })),
} as never;

const readableData: ConfigurationOverrides = {
  // A repeated sync is answered again, not from the cache of earlier answers.
  caches: { caches: { sync_response_cache_duration: 0 } },
  directory: { allow_public_rooms_over_federation: true, room_list_publication_rules: [{ action: 'allow' }] },
};

const noRoomEvents = { room: { timeline: { limit: 0 }, state: { types: [] } } };

/** Calls `work` for the numbers below `count`, ten at a time. */
async function inTens(count: number, work: (index: number) => Promise<unknown>): Promise<void> {
  for (let start = 0; start < count; start += 10)
    await Promise.all(
      Array.from({ length: Math.min(10, count - start) }, (_, offset) => work(start + offset)),
    );
}

async function createSmallRooms(user: TestClient, space: string): Promise<void> {
  await inTens(smallRooms, async (index) => {
    const roomId = await user.createRoom({
      preset: 'public_chat',
      name: `Room ${index}`,
      visibility: 'public',
    });
    await user.setState(space, 'm.space.child', { via: ['a.test'] }, roomId);
    await inTens(10, (message) => user.say(roomId, `message ${message} about everything`));
  });
}

async function createBusyRoom(server: FederatedServer, user: TestClient) {
  const busyRoom = await user.createRoom({ preset: 'public_chat' });
  const busyEvent = await user.say(busyRoom, 'first');
  await inTens(members, async (index) => {
    const member = await server.registerClient(`member${index}`);
    await member.join(busyRoom);
    const relation = { rel_type: 'm.thread', event_id: busyEvent };
    const content = { msgtype: 'm.text', body: `reply ${index} @alice`, 'm.relates_to': relation };
    await member.send(busyRoom, 'm.room.message', { ...content, 'm.mentions': { user_ids: [user.id] } });
    const ownEvent = await member.say(busyRoom, `message of ${index}`);
    const ownThread = { rel_type: 'm.thread', event_id: ownEvent };
    await member.send(busyRoom, 'm.room.message', {
      msgtype: 'm.text',
      body: 'x',
      'm.relates_to': ownThread,
    });
    await member.send(busyRoom, 'm.reaction', {
      'm.relates_to': { rel_type: 'm.annotation', event_id: busyEvent, key: `${index}` },
    });
  });
  return { busyRoom, busyEvent };
}

/** @returns the event id of the last message */
async function fillLargeRoom(user: TestClient, roomId: string): Promise<string> {
  await inTens(largeEvents, (index) =>
    user.setState(roomId, 'org.example.large', { body: largeText }, `${index}`),
  );
  await inTens(largeEvents - 1, (index) => user.say(roomId, `everything ${index} ${largeText}`));
  return user.say(roomId, `everything ${largeText}`);
}

/** Stores nearly as much account data and nearly as large push rules as a user may have. */
async function storeAccountDataAndPushRules(user: TestClient): Promise<void> {
  const values = Array.from({ length: 9_000 }, (_, index) => [`key${index}`, { value: 'x'.repeat(80) }]);
  for (let index = 0; index < 9; index++)
    await user.do(
      'PUT',
      `/user/${enc(user.id)}/account_data/org.example.large${index}`,
      Object.fromEntries(values),
    );
  await inTens(600, (index) =>
    user.do('PUT', `/pushrules/global/override/rule${index}`, {
      actions: ['notify'],
      conditions: [
        { kind: 'event_match', key: 'content.body', pattern: `*${'long pattern '.repeat(20)}${index}*` },
      ],
    }),
  );
}

async function storeToDeviceMessages(server: FederatedServer, user: TestClient): Promise<void> {
  const sender = await server.registerClient('sender');
  await inTens(200, (index) =>
    sender.do('PUT', `/sendToDevice/m.test/large${index}`, {
      messages: { [user.id]: { '*': { body: largeText } } },
    }),
  );
}

function authorizationOf(other: ScriptedServer, { method = 'GET', path, body }: StoredDataRequest): string {
  const content = body === undefined ? undefined : JSON.stringify(body);
  return authorize({ method, uri: path, origin: other.name, destination: 'a.test', content }, other.key);
}

async function read(
  { baseUrl }: FederatedServer,
  { method = 'GET', path, body }: StoredDataRequest,
  authorization: string,
): Promise<ReadResponse> {
  const text = body === undefined ? undefined : JSON.stringify(body);
  const headers = { authorization, ...(text !== undefined && { 'content-type': 'application/json' }) };
  const sent = request(`${baseUrl}${path}`, { method, headers });
  sent.end(text);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  let bytes = 0;
  let start = '';
  response.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (start.length < 200) start += chunk.toString('latin1', 0, 200);
  });
  await once(response, 'end');
  return { status: response.statusCode ?? 0, bytes, start };
}
