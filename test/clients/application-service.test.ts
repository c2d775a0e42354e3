/**
 * A bridge made of the parts that bridges use: matrix-appservice receives transactions and queries, and matrix-js-sdk acts as
 * the users of the bridge.
 */
import './js-sdk/sdk-for-tests.ts';
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AppService, AppServiceRegistration } from 'matrix-appservice';
import { createClient, type MatrixClient, MsgType, Preset } from 'matrix-js-sdk';
import { freePort } from '../support/network/free-port.ts';
import { startTestServer, type TestServer, type TestUser } from '../support/servers/server.ts';
import { after, before, test } from './bounded-test.ts';
import { eventually } from './eventually.ts';

type BridgedEvent = Readonly<Record<string, unknown>> & {
  readonly room_id: string;
  readonly content: Readonly<Record<string, unknown>>;
};

const folder = mkdtempSync(join(tmpdir(), 'hearth-bridge-'));
const file = join(folder, 'registration.yaml');
const registration = new AppServiceRegistration(null);
let service: AppService;
let server: TestServer;
let anna: TestUser;
const ephemeral: BridgedEvent[] = [];

before(async () => {
  const port = await freePort();
  registration.setAppServiceUrl(`http://127.0.0.1:${port}`);
  registration.setId('puppets');
  registration.setHomeserverToken(AppServiceRegistration.generateToken());
  registration.setAppServiceToken(AppServiceRegistration.generateToken());
  registration.setSenderLocalpart('puppeteer');
  registration.setRateLimited(false);
  registration.addRegexPattern('users', '@puppet_.*', true);
  registration.addRegexPattern('aliases', '#puppet_.*', true);
  registration.pushEphemeral = true;
  registration.outputAsYaml(file);
  service = new AppService({ homeserverToken: registration.getHomeserverToken()! });
  service.onUserQuery = (userId) => registerUser(userId);
  service.onAliasQuery = (alias) => createRoomOf(alias);
  service.on('event', (event) => void echo(event as BridgedEvent));
  service.on('ephemeral', (event) => void ephemeral.push(event as BridgedEvent));
  await service.listen(port, '127.0.0.1', 10);
  server = await startTestServer({
    database: 'sqlite',
    config: { appservices: { app_service_config_files: [file] } },
  });
  anna = await server.register('anna');
});
after(async () => {
  await server?.stop();
  await service?.close();
  rmSync(folder, { recursive: true });
});

/** Returns a client that acts as a user of the bridge. */
const clientOf = (userId: string): MatrixClient =>
  createClient({
    baseUrl: server.baseUrl,
    accessToken: registration.getAppServiceToken()!,
    userId,
    queryParams: { user_id: userId },
  });

/** Registers a user of the bridge without matrix-js-sdk, which sends no access token with registrations. */
async function registerUser(userId: string): Promise<void> {
  const username = userId.slice(1).split(':')[0]!;
  const body = { type: 'm.login.application_service', username, inhibit_login: true };
  const token = registration.getAppServiceToken()!;
  const answer = await server.api('POST', '/_matrix/client/v3/register', { token, body });
  assert.equal(answer.status, 200, answer.raw);
}

/** Registers a user of the bridge with the localpart of an alias, and creates a room with the alias as this user. */
async function createRoomOf(alias: string): Promise<void> {
  const name = alias.slice(1).split(':')[0]!;
  await registerUser(`@${name}:test`);
  await clientOf(`@${name}:test`).createRoom({ room_alias_name: name, preset: Preset.PublicChat });
}

/** Joins the rooms that users of the bridge are invited to, and repeats the messages of other users. */
async function echo({ type, sender, state_key, room_id, content }: BridgedEvent): Promise<void> {
  const isPuppet = (userId: unknown) => String(userId).startsWith('@puppet_');
  if (type === 'm.room.member' && isPuppet(state_key) && content['membership'] === 'invite') {
    await eventually('the invited user', () =>
      clientOf(String(state_key))
        .joinRoom(room_id)
        .catch(() => undefined),
    );
  }
  if (type === 'm.room.message' && !isPuppet(sender)) {
    const users = Object.keys((await membersOf(room_id)) ?? {});
    const puppet = users.find(isPuppet)!;
    await clientOf(puppet).sendMessage(room_id, {
      msgtype: MsgType.Text,
      body: `You said: ${content['body']}`,
    });
  }
}

const call = async (method: string, path: string, body?: unknown) => {
  const request = { token: anna.token, ...(body !== undefined && { body }) };
  const answer = await server.api(method, `/_matrix/client/v3${path}`, request);
  assert.equal(answer.status, 200, answer.raw);
  return answer.body;
};

const membersOf = async (roomId: string) =>
  (await call('GET', `/rooms/${roomId}/joined_members`))['joined'] as Record<string, unknown> | undefined;

async function textsIn(roomId: string): Promise<unknown[]> {
  const { chunk } = await call('GET', `/rooms/${roomId}/messages?dir=b&limit=20`);
  return (chunk as BridgedEvent[])
    .filter(({ type }) => type === 'm.room.message')
    .map(({ content }) => content['body']);
}

const say = (roomId: string, body: string) =>
  call('PUT', `/rooms/${roomId}/send/m.room.message/${encodeURIComponent(body)}`, {
    msgtype: 'm.text',
    body,
  });

test('a bridge on matrix-appservice creates the room of an alias that a user joins, and answers there', async () => {
  const { room_id } = await call('POST', `/join/${encodeURIComponent('#puppet_tea:test')}`, {});
  await say(String(room_id), 'hello');
  await eventually('the answer', async () => (await textsIn(String(room_id))).includes('You said: hello'));
});

test('a bridge on matrix-appservice creates a user who is invited, and receives typing in the room', async () => {
  const invite = ['@puppet_ben:test'];
  const { room_id } = await call('POST', '/createRoom', {
    invite,
    is_direct: true,
    preset: 'trusted_private_chat',
  });
  const roomId = String(room_id);
  await eventually(
    'the puppet in the room',
    async () => '@puppet_ben:test' in ((await membersOf(roomId)) ?? {}),
  );
  await call('PUT', `/rooms/${roomId}/typing/${anna.userId}`, { typing: true, timeout: 20_000 });
  await say(roomId, 'are you there?');
  await eventually('the answer', async () => (await textsIn(roomId)).includes('You said: are you there?'));
  await eventually('typing', () =>
    ephemeral.some((event) => event['type'] === 'm.typing' && event.room_id === roomId),
  );
});
