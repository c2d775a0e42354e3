/**
 * An encrypting bridge on matrix-bot-sdk, set up as mautrix bridges are: it creates its devices without logging in (MSC4190),
 * acts as them, and receives key counts, device list changes and to-device messages in transactions (MSC3202, MSC4203).
 */
import '../js-sdk/sdk-for-tests.ts';
import './without-native-crypto.ts';
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  Appservice,
  type IAppserviceRegistration,
  LogService,
  MemoryStorageProvider,
  OTKAlgorithm,
  RustSdkAppserviceCryptoStorageProvider,
} from 'matrix-bot-sdk';
import { freePort } from '../../support/network/free-port.ts';
import { callApi } from '../../support/servers/api-call.ts';
import { after, before, test } from '../bounded-test.ts';
import { eventually } from '../eventually.ts';
import { HearthProcess } from '../hearth-process.ts';
import { EncryptedSession } from '../js-sdk/encrypted-session.ts';

const bot = '@puppeteer:hearth.test';
const ben = '@puppet_ben:hearth.test';

interface Decrypted {
  readonly event_id: string;
  readonly type: string;
  readonly sender: string;
  readonly content: { readonly body?: string };
}

interface MemberEvent {
  readonly state_key?: string;
  readonly content: { readonly membership?: string };
}

const folder = mkdtempSync(join(tmpdir(), 'hearth-bridge-'));
let server: HearthProcess;
let bridge: Appservice;
let registration: IAppserviceRegistration;
let anna: EncryptedSession;
let roomId: string;
/** Messages of Anna that the bridge has decrypted. */
const received: Decrypted[] = [];
/** Errors of the bridge about events that it could not decrypt. */
const decryptionErrors: unknown[] = [];

before(async () => {
  const port = await freePort();
  registration = registrationOf(port);
  const file = join(folder, 'registration.yaml');
  writeFileSync(file, JSON.stringify(registration));
  server = await HearthProcess.create({ app_service_config_files: [file] });
  await server.start();
  LogService.setLogger({ trace() {}, debug() {}, info() {}, warn() {}, error() {} });
  const storage = new MemoryStorageProvider();
  bridge = new Appservice({
    port,
    bindAddress: '127.0.0.1',
    homeserverName: 'hearth.test',
    homeserverUrl: server.url,
    registration,
    storage,
    cryptoStorage: new RustSdkAppserviceCryptoStorageProvider(join(folder, 'keys'), 0),
  });
  bridge.on('room.decrypted_event', (_roomId: string, event: Decrypted) => {
    if (event.type === 'm.room.message' && event.sender === anna.userId) received.push(event);
  });
  bridge.on('room.failed_decryption', (_roomId: string, _event, error) => void decryptionErrors.push(error));
  // By itself, matrix-bot-sdk reads changed device lists only in transactions with messages or counts of keys.
  bridge.on('device_lists', ({ changed }: { readonly changed: string[] }) => {
    const { crypto } = bridge.getIntentForUserId(ben).underlyingClient;
    if (crypto?.isReady)
      void crypto.updateSyncData([], { signed_curve25519: 50 }, [OTKAlgorithm.Signed], changed, []);
  });
  for (const userId of [bot, ben]) {
    await createDevice(userId);
    storage.addRegisteredUser(userId);
  }
  await bridge.begin();
  anna = await EncryptedSession.ofNewUser(server.url, 'anna');
});
after(async () => {
  anna?.stop();
  bridge?.stop();
  await server?.remove();
  rmSync(folder, { recursive: true });
});

const registrationOf = (port: number) => ({
  id: 'puppets',
  url: `http://127.0.0.1:${port}`,
  as_token: 'token-of-the-bridge',
  hs_token: 'token-of-the-homeserver',
  sender_localpart: 'puppeteer',
  rate_limited: false,
  namespaces: { users: [{ regex: '@puppet_.*', exclusive: true }], aliases: [], rooms: [] },
  'de.sorunome.msc2409.push_ephemeral': true,
  receive_ephemeral: true,
  'org.matrix.msc3202': true,
  'io.element.msc4190': true,
});

/** Registers a user of the bridge, unless it is the bot, and creates a device of the user. */
async function createDevice(userId: string): Promise<void> {
  const token = registration.as_token;
  if (userId !== bot) {
    const username = userId.slice(1).split(':')[0]!;
    const body = { type: 'm.login.application_service', username, inhibit_login: true };
    const answer = await callApi(server.url, 'POST', '/_matrix/client/v3/register', { token, body });
    assert.equal(answer.status, 200, answer.raw);
  }
  const path = `/_matrix/client/v3/devices/${deviceOf(userId)}`;
  const query = { user_id: userId };
  const answer = await callApi(server.url, 'PUT', path, { token, query, body: { display_name: 'bridge' } });
  assert.equal(answer.status, 201, answer.raw);
}

const deviceOf = (userId: string) => (userId === bot ? 'BOTDEVICE' : 'BENDEVICE');

/** Waits until the bridge has decrypted all messages, and checks that it received each once. */
async function assertReceived(texts: readonly string[]): Promise<void> {
  await eventually('the bridge to decrypt the messages', () => received.length >= texts.length);
  assert.deepEqual(
    received.map(({ content }) => content.body),
    texts,
  );
  assert.deepEqual(decryptionErrors, []);
}

test('a bridge on matrix-bot-sdk decrypts a message, and its user sends an encrypted answer', async () => {
  const { room_id } = await anna.client.createRoom({
    invite: [bot, ben],
    initial_state: [
      {
        type: 'm.room.encryption',
        state_key: '',
        content: { algorithm: 'm.megolm.v1.aes-sha2', rotation_period_msgs: 5 },
      },
    ],
  });
  roomId = room_id;
  const joined = new Set<unknown>();
  bridge.on('room.event', (_roomId: string, { content, state_key }: MemberEvent) => {
    if (content.membership === 'join') joined.add(state_key);
  });
  for (const userId of [bot, ben]) await bridge.getIntentForUserId(userId).joinRoom(roomId);
  // With encryption, matrix-bot-sdk waits for 5 seconds at each join.
  await eventually('the bridge to receive its joins', () => joined.has(bot) && joined.has(ben));
  for (const userId of [bot, ben]) await bridge.getIntentForUserId(userId).enableEncryption();
  await anna.waitForEncryptedRoom(roomId, 3);
  await eventually('Anna to know the devices of the bridge', async () => {
    const devices = await anna.crypto.getUserDeviceInfo([bot, ben], true);
    return [...devices.values()].every((devicesOfUser) => devicesOfUser.size === 1) && devices.size === 2;
  });
  await anna.say(roomId, 'hello Ben');
  await assertReceived(['hello Ben']);
  const eventId = await bridge.getIntentForUserId(ben).sendText(roomId, 'hello Anna');
  const answer = await anna.decrypted(roomId, eventId);
  assert.equal(answer.getContent()['body'], 'hello Anna');
  assert.equal(answer.getWireType(), 'm.room.encrypted');
  assert.equal(answer.event.sender, ben);
});

test('kill -9 of the server loses and duplicates no message to an encrypting bridge, whose sessions rotate meanwhile', async () => {
  const texts = ['hello Ben', ...Array.from({ length: 20 }, (_, number) => `message ${number}`)];
  const say = async () => {
    for (const text of texts.slice(1)) await anna.sendReliably(roomId, text);
  };
  const saying = say();
  await eventually('the first messages', () => received.length > 5);
  await server.kill();
  await server.start();
  await anna.reconnect();
  await saying;
  await assertReceived(texts);
  const eventId = await bridge.getIntentForUserId(ben).sendText(roomId, 'goodbye Anna');
  assert.equal((await anna.decrypted(roomId, eventId)).getContent()['body'], 'goodbye Anna');
});

test('a bridge on matrix-bot-sdk encrypts for a device that logs in later', async () => {
  const second = await anna.onAnotherDevice();
  try {
    await second.room(roomId);
    await eventually('a message for the new device', async () => {
      const eventId = await bridge.getIntentForUserId(ben).sendText(roomId, 'hello, new device');
      return second.decrypted(roomId, eventId, 2_000).then(
        () => true,
        () => false,
      );
    });
  } finally {
    second.stop();
  }
});
