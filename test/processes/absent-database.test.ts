import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { PushGateway } from '../../src/pushers/test/push-gateway.ts';
import { eventually } from '../clients/eventually.ts';
import { connectionTo, type PostgresServer, startPostgres } from '../support/databases/postgres-server.ts';
import { configure, type ServerProcess, startProcess } from './server-process.ts';

const clientApi = '/_matrix/client/v3';

describe('a server whose PostgreSQL is restarted while messages are sent', () => {
  let folder = '';
  let postgres: PostgresServer;
  let running: ServerProcess | undefined;
  let gateway: PushGateway | undefined;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'hearth-absent-'));
    postgres = await startPostgres();
  });
  after(async () => {
    await running?.kill();
    await gateway?.stop();
    await postgres?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it('answers 503 with a reason while PostgreSQL is not available, reports it in /health, loses neither messages nor push notifications, and works again without a restart of the server', {
    timeout: 600_000,
  }, async () => {
    const { database, ...args } = connectionTo(postgres.port);
    const paths = configure(join(folder, 'home'), {
      database: { name: 'psycopg2', args: { ...args, dbname: database, cp_min: 2, cp_max: 5 } },
      ip_range_whitelist: ['127.0.0.0/8'],
      push: { jitter_delay: 0 },
    });
    const server = await startProcess(paths);
    running = server;
    const call = async (method: string, path: string, token: string | undefined, body: object) => {
      const answer = await server.api(method, `${clientApi}/${path}`, { ...(token && { token }), body });
      assert.equal(answer.status, 200, answer.raw);
      return answer.body;
    };
    const register = async (username: string) => {
      const body = { username, password: 'correct horse', auth: { type: 'm.login.dummy' } };
      return String((await call('POST', 'register', undefined, body))['access_token']);
    };
    const [token, tokenOfBen] = [await register('ann'), await register('ben')];
    const { room_id } = await call('POST', 'createRoom', token, { preset: 'public_chat' });
    const room = encodeURIComponent(String(room_id));
    const roomPath = `${clientApi}/rooms/${room}`;
    await call('POST', `join/${room}`, tokenOfBen, {});
    gateway = await PushGateway.start();
    await call('POST', 'pushers/set', tokenOfBen, {
      kind: 'http',
      app_id: 'app',
      pushkey: 'key',
      lang: 'en',
      app_display_name: 'App',
      device_display_name: 'Phone',
      data: { url: gateway.url(), format: 'event_id_only' },
    });
    const since = String((await server.api('GET', `${clientApi}/sync`, { token })).body['next_batch']);
    const acknowledged: string[] = [];
    const send = async (transaction: string) => {
      const body = { msgtype: 'm.text', body: transaction };
      const answer = await server.api('PUT', `${roomPath}/send/m.room.message/${transaction}`, {
        token,
        body,
      });
      if (answer.status === 200) acknowledged.push(String(answer.body['event_id']));
      return answer;
    };
    let isStopped = false;
    let refusals = 0;
    /** Sends messages, and repeats each until it is acknowledged, as clients do. */
    const load = async (sender: number) => {
      for (let number = 0; !isStopped; number += 1) {
        await eventually('an acknowledged message', async () => {
          const { status, raw } = await send(`${sender}-${number}`);
          if (status === 200) return true;
          assert.equal(status, 503, raw);
          refusals += 1;
          return undefined;
        });
        await delay(20);
      }
    };
    const health = async () => {
      const answer = await fetch(`${server.url}/health`);
      return [answer.status, await answer.text()] as const;
    };
    const loads = Promise.all([1, 2, 3, 4].map(load));
    await eventually('acknowledged messages', () => acknowledged.length > 20);
    assert.deepEqual(await health(), [200, 'OK']);

    await postgres.pause();
    const refused = await send('refused');
    assert.equal(refused.status, 503, refused.raw);
    assert.match(String(refused.body['error']), /database of this server is not available/);
    await eventually('/health', async () => (await health())[0] === 503);
    const [, text] = await health();
    assert.match(
      text,
      /^Cannot write: the database is not available|^Cannot write: the database cannot be written/,
    );
    const acknowledgedBefore = acknowledged.length;
    assert.ok(refusals > 0);

    await postgres.resume();
    await eventually('/health', async () => (await health())[0] === 200);
    // Repeats the refused request with its transaction id, as clients do.
    const repeated = await eventually('an accepted message', async () => {
      const answer = await send('refused');
      return answer.status === 200 ? answer : undefined;
    });
    assert.equal((await send('refused')).body['event_id'], repeated.body['event_id']);
    await eventually('messages after the restart', () => acknowledged.length > acknowledgedBefore + 20);
    isStopped = true;
    await loads;
    const stored = await messagesSince(server, token, since, room);
    assert.deepEqual(stored.toSorted(), [...new Set(acknowledged)].toSorted(), 'each message is stored once');
    const notified = () => new Set(gateway?.received.map(({ event_id }) => event_id));
    await gateway.until(() => stored.every((eventId) => notified().has(eventId)));
    await server.stop();
  });
});

/** Returns the ids of the messages of a room after a sync token, in their order. */
async function messagesSince(
  server: ServerProcess,
  token: string,
  since: string,
  room: string,
): Promise<string[]> {
  const eventIds: string[] = [];
  for (let from = since; ; ) {
    const query = { from, dir: 'f', limit: 1_000 };
    const page = await server.api('GET', `${clientApi}/rooms/${room}/messages`, { token, query });
    assert.equal(page.status, 200, page.raw);
    const chunk = page.body['chunk'] as { type: string; event_id: string }[];
    eventIds.push(...chunk.filter(({ type }) => type === 'm.room.message').map(({ event_id }) => event_id));
    if (typeof page.body['end'] !== 'string' || chunk.length === 0) return eventIds;
    from = page.body['end'];
  }
}
