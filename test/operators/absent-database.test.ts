import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../clients/eventually.ts';
import { connectionTo, type PostgresServer, startPostgres } from '../support/databases/postgres-server.ts';
import { configure, type ServerProcess, startProcess } from './server-process.ts';

const client = '/_matrix/client/v3';

describe('a server whose PostgreSQL is unavailable for a while', () => {
  let folder = '';
  let postgres: PostgresServer;
  let running: ServerProcess | undefined;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'hearth-absent-'));
    postgres = await startPostgres();
  });
  after(async () => {
    await running?.kill();
    await postgres?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it('answers 503 with a reason, reports it in /health, loses nothing, and works again without a restart', {
    timeout: 120_000,
  }, async () => {
    const { database, ...args } = connectionTo(postgres.port);
    const paths = configure(join(folder, 'home'), {
      database: { name: 'psycopg2', args: { ...args, dbname: database, cp_min: 2, cp_max: 5 } },
    });
    const server = await startProcess(paths);
    running = server;
    const register = { username: 'ann', password: 'correct horse', auth: { type: 'm.login.dummy' } };
    const account = await server.api('POST', `${client}/register`, { body: register });
    const token = String(account.body['access_token']);
    const room = await server.api('POST', `${client}/createRoom`, { token, body: {} });
    const roomPath = `${client}/rooms/${encodeURIComponent(String(room.body['room_id']))}`;
    const since = String((await server.api('GET', `${client}/sync`, { token })).body['next_batch']);
    const acknowledged: string[] = [];
    const send = async (number: number) => {
      const body = { msgtype: 'm.text', body: `${number}` };
      const answer = await server.api('PUT', `${roomPath}/send/m.room.message/${number}`, { token, body });
      if (answer.status === 200) acknowledged.push(String(answer.body['event_id']));
      return answer;
    };
    const health = async () => {
      const answer = await fetch(`${server.url}/health`);
      return [answer.status, await answer.text()] as const;
    };
    for (let number = 0; number < 10; number += 1) assert.equal((await send(number)).status, 200);
    assert.deepEqual(await health(), [200, 'OK']);

    await postgres.pause();
    const refused = await send(10);
    assert.equal(refused.status, 503, refused.raw);
    assert.match(String(refused.body['error']), /database of this server is not available/);
    await eventually('/health', async () => (await health())[0] === 503);
    const [, text] = await health();
    assert.match(
      text,
      /^Cannot write: the database is not available|^Cannot write: the database cannot be written/,
    );

    await postgres.resume();
    await eventually('/health', async () => (await health())[0] === 200);
    // Clients repeat the same request.
    const repeated = await eventually('an accepted message', async () => {
      const answer = await send(10);
      return answer.status === 200 ? answer : undefined;
    });
    assert.equal((await send(10)).body['event_id'], repeated.body['event_id']);
    const sync = await server.api('GET', `${client}/sync`, { token, query: { since, timeout: 0 } });
    const { join: joined } = sync.body['rooms'] as {
      join: Record<string, { timeline: { events: { event_id: string }[] } }>;
    };
    const events = Object.values(joined)[0]?.timeline.events.map(({ event_id }) => event_id) ?? [];
    assert.deepEqual(events, [...new Set(acknowledged)].slice(-events.length));
    for (const eventId of acknowledged) {
      const found = await server.api('GET', `${roomPath}/event/${encodeURIComponent(eventId)}`, { token });
      assert.equal(found.status, 200, eventId);
    }
    await server.stop();
  });
});
