import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { databaseChecks } from '../../src/composition/database-checks.ts';
import {
  type CheckResult,
  checkDatabase,
  type Database,
  openDatabase,
  openDatabaseExclusively,
  type Statement,
  tableSizes,
} from '../../src/kernel/database/index.ts';
import { silentLogger } from '../../src/kernel/observability/index.ts';
import { largestRooms } from '../../src/room-engine/index.ts';
import { databaseOption } from '../support/databases/database-option.ts';
import { selectedDatabases } from '../support/databases/databases.ts';
import { startTestServer, type TestServer } from '../support/servers/server.ts';
import { configure, hearth } from './server-process.ts';

const clientApi = '/_matrix/client/v3';

/** Statements that damage the database, the problem that the check must report, and whether `--mend` can repair it. */
const faults: readonly {
  readonly sql: string;
  readonly problem: RegExp;
  readonly outcome: CheckResult['outcome'];
}[] = [
  {
    sql: `insert into access_tokens (id, hash, user_id, created_at, confirmed_at) values (9999, 'x', '@gone:test', 0, 0)`,
    problem: /^access tokens of accounts that do not exist$/,
    outcome: 'mendable',
  },
  {
    sql: `insert into to_device_messages (user_id, device_id, position, message) values ('@ann:test', 'GONE', 1, '{}')`,
    problem: /^rows of to_device_messages for devices that do not exist$/,
    outcome: 'mendable',
  },
  {
    sql: `insert into stripped_state (room_nid, user_id, json) values (777777, '@ann:test', '[]')`,
    problem: /^rows of stripped_state for rooms that do not exist$/,
    outcome: 'mendable',
  },
  {
    sql: `update number_bounds set bound = 3 where name = 'positions'`,
    problem: /^columns with numbers above the bound positions/,
    outcome: 'mendable',
  },
  {
    sql: `insert into redacted_events (event_nid, redacted_ts) values (777777, 1)`,
    problem: /^rows of redacted_events for events that do not exist$/,
    outcome: 'mendable',
  },
  {
    sql: `insert into pending_pushes (pusher_id, stream, user_id, room_id, nid, added_at, due_at)
      values (777777, 1, '@ann:test', '!r', 1, 1, 1)`,
    problem: /^rows of pending_pushes for pushers that do not exist$/,
    outcome: 'mendable',
  },
  {
    sql: `update rooms set extremities = '[777777,' || substr(extremities, 2) where room_nid = 1`,
    problem: /^forward extremities whose events are missing/,
    outcome: 'mendable',
  },
  {
    // Leaves a text that is not valid JSON.
    sql: `update rooms set extremities = '[7' where room_nid = 2`,
    problem: /^rooms with a state but without a stored forward extremity/,
    outcome: 'open',
  },
  {
    sql: `delete from state_groups where id = (select max(prev_id) from state_group_edges)`,
    problem: /^state groups without the group that they build on/,
    outcome: 'open',
  },
  {
    sql: `update events set state_group = 777777 where nid = (select max(nid) from events)`,
    problem: /^events whose state group is missing/,
    outcome: 'open',
  },
  {
    sql: `update memberships set membership = 'leave' where membership = 'join' and user_id = '@bob:test'`,
    problem: /^memberships that differ from the current state/,
    outcome: 'open',
  },
  {
    sql: `delete from current_state where room_nid = 3 and key_nid = (select max(key_nid) from current_state where room_nid = 3)`,
    problem: /^rooms whose current state differs from their newest state group/,
    outcome: 'open',
  },
  {
    // Lets a state group build on itself.
    sql: `update state_group_edges set prev_id = id where id = (select max(id) from state_group_edges)`,
    problem: /^rooms whose current state differs from their newest state group/,
    outcome: 'open',
  },
];

for (const kind of selectedDatabases(import.meta.url)) {
  describe(`hearth database check and hearth database size on ${kind}`, () => {
    let server: TestServer | undefined;
    let database: Database | undefined;
    let folder = '';
    before(async () => {
      folder = mkdtempSync(join(tmpdir(), 'hearth-check-'));
      server = await startTestServer({ database: kind });
      database = await openDatabase(server.databaseOptions, { log: silentLogger });
    });
    after(async () => {
      await database?.close();
      await server?.stop();
      rmSync(folder, { recursive: true, force: true });
    });
    const check = (mends = false) =>
      checkDatabase({ main: database!, state: database! }, databaseChecks(kind), mends);
    const inconsistencies = (results: readonly CheckResult[]) =>
      results.filter(({ outcome }) => outcome !== 'none');
    let paths: readonly string[] | undefined;
    const command = (name: string, ...flags: string[]) => {
      paths ??= configure(folder, { database: databaseOption(server!.databaseOptions) });
      return hearth(['database', name, ...paths.flatMap((path) => ['-c', path]), ...flags]);
    };

    it('finds no inconsistency in the database of a running server, and measures its tables and its largest room', async () => {
      const [ann, bob] = [await server!.register('ann'), await server!.register('bob')];
      const call = async (method: string, path: string, token: string, body: object) => {
        const answer = await server!.api(method, `${clientApi}/${path}`, { token, body });
        assert.equal(answer.status, 200, answer.raw);
        return answer.body;
      };
      const rooms: string[] = [];
      for (let count = 0; count < 3; count += 1) {
        const { room_id } = await call('POST', 'createRoom', ann.token, { invite: [bob.userId] });
        rooms.push(encodeURIComponent(String(room_id)));
        if (count !== 1) await call('POST', `join/${rooms[count]}`, bob.token, {});
      }
      const [first, , third] = rooms;
      for (let number = 0; number < 40; number += 1)
        await call('PUT', `rooms/${third}/state/org.example/${number}`, ann.token, { number });
      const sent = await call('PUT', `rooms/${first}/send/m.room.message/1`, ann.token, {
        body: 'x'.repeat(20_000),
        msgtype: 'm.text',
      });
      await call(
        'PUT',
        `rooms/${first}/redact/${encodeURIComponent(String(sent['event_id']))}/2`,
        ann.token,
        {},
      );
      await call('PUT', `rooms/${third}/send/m.room.message/3`, ann.token, {
        body: 'y'.repeat(30_000),
        msgtype: 'm.text',
      });
      await call('POST', `rooms/${first}/leave`, bob.token, {});
      await call('POST', `rooms/${first}/forget`, bob.token, {});
      await call('POST', 'logout', (await server!.register('eve')).token, {});
      assert.deepEqual(inconsistencies(await check()), []);
      const tables = await tableSizes({ kind, database: database! });
      const largest = await largestRooms({ main: database!, state: database! }, kind, 2);
      assert.ok(tables.some(({ table, bytes }) => table === 'events' && bytes > 0));
      assert.equal(encodeURIComponent(largest[0]!.roomId), third);
      assert.ok(largest[0]!.bytes > 30_000 && largest[0]!.events > 40 && largest[0]!.stateGroups > 40);
    });

    it('reports each inconsistency and, given --mend while no server runs, repairs those whose repair loses no data', async () => {
      await server!.homeserver.stop();
      const statements: Statement[] = faults.map(({ sql }) => ({ sql, rows: [[]] }));
      await database!.batch(statements);
      const results = await check();
      for (const { problem, outcome } of faults) {
        const result = results.find((candidate) => problem.test(candidate.problem));
        assert.equal(result?.outcome, outcome, String(problem));
        assert.ok(result && result.count > 0 && result.examples.length > 0, String(problem));
      }
      const { code, out } = await command('check', '--json', '--mend');
      assert.equal(code, 1, 'some faults need a decision');
      const mended: CheckResult[] = JSON.parse(out).checks;
      for (const { problem, outcome } of faults) {
        const result = mended.find((candidate) => problem.test(candidate.problem));
        assert.equal(result?.outcome, outcome === 'mendable' ? 'mended' : 'open', String(problem));
      }
      const remaining = inconsistencies(await check());
      assert.deepEqual(
        remaining.filter(({ outcome }) => outcome !== 'open'),
        [],
      );
    });

    it('hearth database compact refuses to run while a server uses the database, and releases free space afterwards', async () => {
      await database!.close();
      const held = await openDatabaseExclusively(
        server!.databaseOptions,
        { log: silentLogger },
        () => undefined,
      );
      const refused = await command('compact');
      await held.close();
      assert.deepEqual(
        [refused.code, /is in use by another server/.test(refused.err)],
        [1, true],
        refused.err,
      );
      const { code, out } = await command('compact');
      assert.deepEqual([code, /^\d+\.\d MiB of disk space were released\.\n$/.test(out)], [0, true], out);
    });
  });
}
