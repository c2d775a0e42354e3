import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import { until } from '../support/other-servers/federation-sender.ts';
import { type FederatedServer, SeveralServers } from '../support/other-servers/several-servers.ts';
import type { TestClient } from '../support/users/test-client.ts';

const enc = encodeURIComponent;

const listener = (resource: { readonly names: ('client' | 'metrics' | 'federation')[] }) => ({
  port: 0,
  type: 'http' as const,
  bind_addresses: ['127.0.0.1'],
  resources: [resource],
});

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('events and EDUs between two servers', () => {
    let several: SeveralServers;
    let a: FederatedServer;
    let b: FederatedServer;
    let alice: TestClient;
    let bob: TestClient;
    let roomId: string;
    before(async () => {
      const opened = await SeveralServers.open(kind, ['a.test', 'b.test'], {
        config: {
          federationClient: { federation: { max_long_retries: 0, destination_min_retry_interval: 500 } },
          observability: { enable_metrics: true, metrics_flags: { known_servers: true } },
          federation: { federation_metrics_domains: ['a.test'] },
          http: {
            listeners: [
              listener({ names: ['client', 'metrics'] }),
              { ...listener({ names: ['federation'] }), tls: true },
            ],
          },
        },
      });
      several = opened.several;
      [a, b] = opened.servers;
      alice = await a.registerClient('alice');
      bob = await b.registerClient('bob');
      roomId = await alice.createRoom();
      await joinThroughA(bob, roomId);
    });
    after(() => several.stop());

    const joinThroughA = (user: TestClient, room: string) =>
      user.do('POST', `/join/${enc(room)}`, {}, { server_name: 'a.test', via: 'a.test' });

    const bodies = async (user: TestClient) => {
      const path = `/rooms/${enc(roomId)}/messages`;
      const { chunk } = await user.do('GET', path, undefined, { dir: 'b', limit: 100 });
      return (chunk as { type: string; content: { body: string } }[])
        .filter(({ type }) => type === 'm.room.message')
        .map(({ content }) => content.body)
        .reverse();
    };

    /** Returns the contents of the room's ephemeral events in a sync, by type. */
    const ephemeral = async (user: TestClient) => {
      const { rooms } = await user.do('GET', '/sync', undefined, { timeout: 0 });
      // The room is absent until its members are known.
      const joined = (rooms as { join?: Record<string, { ephemeral: { events: Ephemeral[] } }> } | undefined)
        ?.join;
      return new Map(joined?.[roomId]?.ephemeral.events.map(({ type, content }) => [type, content]));
    };

    it('delivers messages in both directions', async () => {
      await alice.say(roomId, 'from alice');
      await until(async () => (await bodies(bob)).includes('from alice'));
      await bob.say(roomId, 'from bob');
      await until(async () => (await bodies(alice)).includes('from bob'));
      assert.deepEqual(await bodies(alice), await bodies(bob));
    });

    it('delivers typing notifications', async () => {
      const path = `/rooms/${enc(roomId)}/typing/${enc(alice.id)}`;
      const typists = async () => (await ephemeral(bob)).get('m.typing')?.['user_ids'] ?? [];
      await alice.do('PUT', path, { typing: true, timeout: 30_000 });
      await until(async () => (await typists()).includes(alice.id));
      await alice.do('PUT', path, { typing: false });
      await until(async () => !(await typists()).includes(alice.id));
    });

    it('delivers public read receipts, but no private ones', async () => {
      const [first, second] = [await alice.say(roomId, 'one'), await alice.say(roomId, 'two')];
      await until(async () => (await bodies(bob)).includes('two'));
      const read = (type: string, eventId: string, body = {}) =>
        bob.do('POST', `/rooms/${enc(roomId)}/receipt/${type}/${enc(eventId)}`, body);
      await read('m.read.private', second);
      await read('m.read', first, { thread_id: 'main' });
      const receipts = async () =>
        ((await ephemeral(alice)).get('m.receipt') ?? {}) as Record<string, Receipts | undefined>;
      await until(async () => (await receipts())[first]?.['m.read']?.[bob.id] !== undefined);
      const receiptsOfAlice = await receipts();
      assert.equal(receiptsOfAlice[first]?.['m.read']?.[bob.id]?.thread_id, 'main');
      assert.equal(receiptsOfAlice[second], undefined);
    });

    it('delivers presence', async () => {
      const path = `/presence/${enc(alice.id)}/status`;
      await alice.do('PUT', path, { presence: 'unavailable', status_msg: 'at lunch' });
      await until(async () => (await bob.do('GET', path))['status_msg'] === 'at lunch');
      assert.equal((await bob.do('GET', path))['presence'], 'unavailable');
    });

    it('delivers all messages sent while the other server was unreachable', async () => {
      b.disconnect();
      for (const body of ['while away 1', 'while away 2', 'while away 3']) await alice.say(roomId, body);
      await b.untilConnectionAttempt();
      b.reconnect();
      await until(async () => (await bodies(bob)).includes('while away 3'));
      await until(async () => (await bodies(bob)).includes('while away 1'));
      await alice.say(roomId, 'and on');
      await until(async () => (await bodies(bob)).includes('and on'));
      assert.deepEqual(await bodies(bob), await bodies(alice));
    });

    it('delivers after a restart the messages that the sending server had not delivered before', async () => {
      b.disconnect();
      await alice.say(roomId, 'before the stop');
      await a.restart();
      b.reconnect();
      await until(async () => (await bodies(bob)).includes('before the stop'));
    });

    it('reports federation metrics [option: federation_metrics_domains, metrics_flags.known_servers]', async () => {
      const metrics = async (server: FederatedServer) => (await server.api('GET', '/_server/metrics')).raw;
      await alice.say(roomId, 'to be counted');
      await until(async () => (await bodies(bob)).includes('to be counted'));
      const [ofA, ofB] = [await metrics(a), await metrics(b)];
      assert.match(ofB, /server_federation_last_received_pdu_age_seconds\{server_name="a.test"\} [\d.]+/);
      assert.match(ofB, /server_federation_last_sent_pdu_age_seconds\{server_name="a.test"\} [\d.]+/);
      assert.doesNotMatch(ofA, /pdu_age_seconds\{/);
      assert.match(ofA, /^server_federation_known_servers 2$/m);
      assert.match(ofA, /^server_federation_transactions_sent_total\{outcome="acknowledged"\} [1-9]/m);
      assert.match(ofB, /^server_federation_items_total\{direction="received",kind="pdu"\} [1-9]/m);
      assert.match(ofA, /^server_federation_destinations\{state="waiting to retry"\} 0$/m);
      const nothingPending = /^server_federation_pending\{kind="pdu"\} 0$/m;
      await until(async () => nothingPending.test(await metrics(a)));
    });

    it('removes the room from the sync of a remote user who was kicked', async () => {
      await alice.do('POST', `/rooms/${enc(roomId)}/kick`, { user_id: bob.id });
      await until(async () => {
        const { rooms } = await bob.do('GET', '/sync', undefined, { timeout: 0 });
        const { join = {} } = (rooms ?? {}) as { join?: Record<string, unknown> };
        return !(roomId in join);
      });
    });
  });
});

interface Ephemeral {
  readonly type: string;
  readonly content: Record<string, string[] | undefined>;
}

type Receipts = Record<string, Record<string, { thread_id?: string } | undefined> | undefined>;
