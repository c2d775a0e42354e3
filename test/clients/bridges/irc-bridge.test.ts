/** A bridge on the `Bridge` class of matrix-appservice-bridge, between Hearth and an IRC network of Debian's ngIRCd. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../support/network/free-port.ts';
import { callApi } from '../../support/servers/api-call.ts';
import { after, before, test } from '../bounded-test.ts';
import { eventually } from '../eventually.ts';
import { HearthProcess } from '../hearth-process.ts';
import { BridgeProcess } from './bridge-process.ts';
import { bridgeNick, killingText } from './irc-bridge-settings.ts';
import { IrcConnection } from './irc-connection.ts';
import { IrcServer } from './irc-server.ts';
import { Journal } from './journal.ts';

const channel = '#hearth';
const anna = '@anna:hearth.test';

const folder = mkdtempSync(join(tmpdir(), 'hearth-bridge-'));
const journal = join(folder, 'journal');
let network: IrcServer;
let nina: IrcConnection;
let server: HearthProcess;
let bridge: BridgeProcess;
let token: string;
let roomId: string;
/** Texts that the IRC network has received from the bridge. */
const onIrc: string[] = [];
/** Texts that Anna has sent in the room. */
const fromAnna: string[] = [];
/** Texts that Nina has sent on IRC. */
const fromNina: string[] = [];

before(async () => {
  network = await IrcServer.start();
  const port = await freePort();
  const registration = join(folder, 'registration.yaml');
  writeFileSync(registration, JSON.stringify(registrationOf(port)));
  server = await HearthProcess.create({ app_service_config_files: [registration] });
  await server.start();
  bridge = new BridgeProcess({
    registration,
    homeserverToken: 'token-of-the-homeserver',
    homeserverUrl: server.url,
    domain: 'hearth.test',
    port,
    ircPort: network.port,
    journal,
  });
  await bridge.start();
  nina = await IrcConnection.open(network.port, 'nina');
  await nina.join(channel);
  nina.on('message', ({ nick, text }) => void (nick === bridgeNick && onIrc.push(text)));
  const body = { username: 'anna', password: 'battery staple', auth: { type: 'm.login.dummy' } };
  token = String((await call('POST', '/register', body))['access_token']);
});
after(async () => {
  nina?.close();
  await bridge?.kill();
  await server?.remove();
  await network?.stop();
  rmSync(folder, { recursive: true });
});

const registrationOf = (port: number) => ({
  id: 'irc',
  url: `http://127.0.0.1:${port}`,
  as_token: 'token-of-the-bridge',
  hs_token: 'token-of-the-homeserver',
  sender_localpart: 'ircbot',
  rate_limited: false,
  protocols: ['irc'],
  namespaces: {
    users: [{ regex: '@irc_.*', exclusive: true }],
    aliases: [{ regex: '#irc_.*', exclusive: true }],
    rooms: [],
  },
});

async function call(method: string, path: string, body?: unknown): Promise<Record<string, unknown>> {
  const request = { ...(token && { token }), ...(body !== undefined && { body }) };
  const answer = await callApi(server.url, method, `/_matrix/client/v3${path}`, request);
  assert.equal(answer.status, 200, answer.raw);
  return answer.body;
}

/** Sends a message in the room, and repeats the request until the server answers. */
async function annaSays(text: string): Promise<void> {
  const path = `/rooms/${encodeURIComponent(roomId)}/send/m.room.message/${fromAnna.length}`;
  fromAnna.push(text);
  const send = () => call('PUT', path, { msgtype: 'm.text', body: text }).catch(() => undefined);
  await eventually('the server to accept a message', send);
}

async function ninaSays(text: string): Promise<void> {
  fromNina.push(text);
  await nina.say(channel, text);
}

/** Returns the texts of Nina in the room, oldest first. */
async function textsInRoom(): Promise<unknown[]> {
  const { chunk } = await call('GET', `/rooms/${encodeURIComponent(roomId)}/messages?dir=b&limit=500`);
  const events = chunk as {
    readonly type: string;
    readonly sender: string;
    readonly content: { readonly body: string };
  }[];
  const messages = events.filter(
    ({ type, sender }) => type === 'm.room.message' && sender === '@irc_nina:hearth.test',
  );
  return messages.map(({ content }) => content.body).reverse();
}

/** Waits until all messages have arrived, and checks that each has arrived once and in order. */
async function assertAllRelayed(): Promise<void> {
  const { length } = fromAnna;
  await eventually('the messages on IRC', () => onIrc.length >= length);
  await eventually('the messages in the room', async () => (await textsInRoom()).length >= fromNina.length);
  await eventually('the journal', () => new Journal(journal).pending().length === 0);
  assert.deepEqual(
    onIrc,
    fromAnna.map((text) => `<${anna}> ${text}`),
  );
  assert.deepEqual(await textsInRoom(), fromNina);
  const received = new Journal(journal).events.map(({ run, id }) => `${run} ${id}`);
  assert.equal(new Set(received).size, received.length, 'a running bridge has received an event twice');
}

test('a bridge on matrix-appservice-bridge relays between the room of an alias and a channel of an IRC network', async () => {
  const protocols = await call('GET', '/thirdparty/protocols');
  assert.deepEqual(Object.keys(protocols), ['irc']);
  const locations = await call('GET', `/thirdparty/location/irc?channel=${encodeURIComponent(channel)}`);
  const [{ alias }] = locations as unknown as [{ readonly alias: string }];
  roomId = String((await call('POST', `/join/${encodeURIComponent(alias)}`, {}))['room_id']);
  await annaSays('hello from the room');
  await ninaSays('hello from IRC');
  await assertAllRelayed();
});

test('kill -9 of a bridge loses and duplicates no message, neither before the bridge has stored a transaction nor before the bridge has answered the transaction', async () => {
  bridge.freeze();
  for (let number = 0; number < 5; number++) await annaSays(`while the bridge is frozen: ${number}`);
  await bridge.kill();
  await annaSays('while the bridge is down');
  await bridge.start();
  await assertAllRelayed();
  await annaSays(killingText);
  await bridge.ended();
  await annaSays('while the bridge is down again');
  await bridge.start();
  await ninaSays('hello again');
  await assertAllRelayed();
});

test('kill -9 of the server loses and duplicates no message in either direction of a bridge', async () => {
  const talkInRoom = async () => {
    for (let number = 0; number < 40; number++) await annaSays(`from the room: ${number}`);
  };
  const talkOnIrc = async () => {
    for (let number = 0; number < 40; number++) await ninaSays(`from IRC: ${number}`);
  };
  const countBefore = onIrc.length;
  const talking = Promise.all([talkInRoom(), talkOnIrc()]);
  await eventually('the first messages', () => onIrc.length > countBefore + 5);
  await server.kill();
  await server.start();
  await talking;
  await assertAllRelayed();
});
