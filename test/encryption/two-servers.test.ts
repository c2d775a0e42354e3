import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '../../src/protocol/index.ts';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import { type FederatedServer, SeveralServers } from '../support/other-servers/several-servers.ts';
import type { TestUser } from '../support/servers/server.ts';
import { ClientDevice, ClientIdentity } from '../support/users/client-device.ts';

const curve = 'signed_curve25519';
const enc = encodeURIComponent;

/** Makes servers retry soon after a failed request. */
const shortRetries = {
  federationClient: {
    federation: { destination_min_retry_interval: 200, destination_max_retry_interval: 1_000 },
  },
};

interface SyncAnswer {
  readonly next_batch: string;
  readonly device_lists?: { readonly changed?: readonly string[]; readonly left?: readonly string[] };
  readonly to_device?: { readonly events: readonly { content: Record<string, unknown>; sender: string }[] };
}

/** A device with keys, and the data that its client has received in sync so far. */
class SyncingDevice {
  readonly server: FederatedServer;
  readonly user: TestUser;
  readonly client: ClientDevice;
  readonly changed = new Set<string>();
  readonly left = new Set<string>();
  /** The sender and the number `n` of each to-device message. */
  readonly messages: unknown[] = [];
  #since: string | undefined;

  constructor(server: FederatedServer, user: TestUser) {
    this.server = server;
    this.user = user;
    this.client = new ClientDevice(user.userId, user.deviceId);
  }

  get id(): string {
    return this.user.userId;
  }

  static async register(server: FederatedServer, name: string): Promise<SyncingDevice> {
    const device = new SyncingDevice(server, await server.register(name));
    await device.uploadKeys();
    return device;
  }

  /** Logs the same user in on another device. */
  async addDevice(): Promise<SyncingDevice> {
    const identifier = { type: 'm.id.user', user: this.id };
    const body = { type: 'm.login.password', identifier, password: 'correct horse' };
    const login = (await this.server.api('POST', '/_matrix/client/v3/login', { body })).body;
    const device = new SyncingDevice(this.server, {
      userId: this.id,
      deviceId: String(login['device_id']),
      token: String(login['access_token']),
    });
    await device.uploadKeys();
    return device;
  }

  async call(method: string, path: string, body?: unknown, query: Record<string, string> = {}) {
    const request = { token: this.user.token, query, ...(body !== undefined && { body }) };
    const answer = await this.server.api(method, `/_matrix/client/v3${path}`, request);
    assert.equal(answer.status, 200, `${method} ${path}: ${answer.raw}`);
    return answer.body;
  }

  uploadKeys(): Promise<unknown> {
    const keys = { device_keys: this.client.deviceKeys(), one_time_keys: this.client.oneTimeKeys(10) };
    return this.call('POST', '/keys/upload', keys);
  }

  async sync(): Promise<void> {
    const query = this.#since === undefined ? {} : { since: this.#since, timeout: '300' };
    const answer = (await this.call('GET', '/sync', undefined, query)) as unknown as SyncAnswer;
    this.#since = answer.next_batch;
    for (const userId of answer.device_lists?.changed ?? []) this.changed.add(userId);
    for (const userId of answer.device_lists?.left ?? []) this.left.add(userId);
    for (const { content, sender } of answer.to_device?.events ?? [])
      this.messages.push([sender, content['n']]);
  }

  /** Syncs until the condition holds. */
  async until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
    for (const end = performance.now() + 120_000; ; ) {
      await this.sync();
      if (await condition()) return;
      assert.ok(performance.now() < end, `${this.id} did not receive: ${what}`);
    }
  }

  async devicesOf({ id }: SyncingDevice): Promise<string[]> {
    const answer = await this.call('POST', '/keys/query', { device_keys: { [id]: [] } });
    return Object.keys((answer['device_keys'] as Record<string, JsonObject>)[id] ?? {}).sort();
  }

  async masterKeyOf({ id }: SyncingDevice): Promise<unknown> {
    const answer = await this.call('POST', '/keys/query', { device_keys: { [id]: [] } });
    return (answer['master_keys'] as Record<string, JsonObject>)[id]?.['keys'];
  }

  send(txnId: string, messages: JsonObject): Promise<unknown> {
    return this.call('PUT', `/sendToDevice/m.test/${txnId}`, { messages });
  }

  join(roomId: string, via: FederatedServer): Promise<unknown> {
    return this.call('POST', `/join/${enc(roomId)}`, {}, { server_name: via.name, via: via.name });
  }
}

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('end-to-end encryption across two servers', () => {
    let several: SeveralServers;
    let a: FederatedServer;
    let b: FederatedServer;
    let alice: SyncingDevice;
    let bob: SyncingDevice;
    let roomId: string;
    before(async () => {
      const opened = await SeveralServers.open(kind, ['a.test', 'b.test'], { config: shortRetries });
      several = opened.several;
      [a, b] = opened.servers;
      alice = await SyncingDevice.register(a, 'alice');
      bob = await SyncingDevice.register(b, 'bob');
      const initial_state = [
        { type: 'm.room.encryption', state_key: '', content: { algorithm: 'm.megolm.v1.aes-sha2' } },
      ];
      roomId = String(
        (await alice.call('POST', '/createRoom', { preset: 'public_chat', initial_state }))['room_id'],
      );
      await Promise.all([alice.sync(), bob.sync()]);
      await bob.join(roomId, a);
    });
    after(() => several.stop());

    it("a join puts both users into each other's device_lists.changed and makes their devices and one-time keys available", async () => {
      await alice.until('bob', () => alice.changed.has(bob.id));
      await bob.until('alice', () => bob.changed.has(alice.id));
      assert.deepEqual(await alice.devicesOf(bob), [bob.user.deviceId]);
      assert.deepEqual(await bob.devicesOf(alice), [alice.user.deviceId]);
      const claimed = await alice.call('POST', '/keys/claim', {
        one_time_keys: { [bob.id]: { [bob.user.deviceId]: curve } },
      });
      const keys = claimed['one_time_keys'] as Record<string, Record<string, JsonObject>>;
      assert.equal(Object.keys(keys[bob.id]![bob.user.deviceId]!).length, 1);
    });

    it('new devices, deleted devices and cross-signing keys are visible on the other server', async () => {
      alice.changed.clear();
      const second = await bob.addDevice();
      const deviceIds = [bob.user.deviceId, second.user.deviceId].sort();
      await alice.until('the second device', async () => {
        return alice.changed.has(bob.id) && (await alice.devicesOf(bob)).length === 2;
      });
      assert.deepEqual(await alice.devicesOf(bob), deviceIds);
      const identity = new ClientIdentity(bob.id);
      await bob.call('POST', '/keys/device_signing/upload', identity.keys());
      await alice.until('the master key', async () => (await alice.masterKeyOf(bob)) !== undefined);
      assert.deepEqual(await alice.masterKeyOf(bob), identity.masterKey()['keys']);
      await second.call('POST', '/logout', {});
      await alice.until(
        'the deletion of the second device',
        async () => (await alice.devicesOf(bob)).length === 1,
      );
    });

    it('cached devices are returned while the other server is unreachable, and missed changes are fetched afterwards', async () => {
      await alice.until('the device list', async () => (await alice.devicesOf(bob)).length === 1);
      b.disconnect();
      assert.deepEqual(await alice.devicesOf(bob), [bob.user.deviceId]);
      a.disconnect();
      const third = await bob.addDevice();
      await a.untilConnectionAttempt();
      assert.deepEqual(await alice.devicesOf(bob), [bob.user.deviceId]);
      a.reconnect();
      b.reconnect();
      await alice.until('the third device', async () =>
        (await alice.devicesOf(bob)).includes(third.user.deviceId),
      );
    });

    it('to-device messages arrive once and in order, across restarts of both servers', async () => {
      alice.messages.length = 0;
      for (let n = 0; n < 30; n++) {
        const send = () => bob.send(`order-${n}`, { [alice.id]: { [alice.user.deviceId]: { n } } });
        await send();
        if (n % 7 === 0) await send();
        if (n === 10) await a.restart();
        if (n === 20) await b.restart();
      }
      await alice.until('all messages', () => alice.messages.length >= 30);
      await alice.sync();
      assert.deepEqual(
        alice.messages,
        Array.from({ length: 30 }, (_, n) => [bob.id, n]),
      );
    });

    it('leaving the last shared room puts the user into device_lists.left and ends device list updates', async () => {
      alice.left.clear();
      await bob.call('POST', `/rooms/${enc(roomId)}/leave`, {});
      await alice.until('bob in device_lists.left', () => alice.left.has(bob.id));
      await bob.addDevice();
      alice.changed.clear();
      alice.messages.length = 0;
      // A device list update for the new device would arrive before this message.
      await bob.send('after-the-update', { [alice.id]: { [alice.user.deviceId]: { n: 1 } } });
      await alice.until('the message', () => alice.messages.length > 0);
      assert.equal(alice.changed.has(bob.id), false);
    });
  });
});
