import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { pino } from 'pino';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { TestClient } from '../../../test/support/users/test-client.ts';
import { Jobs, jobMigrations } from '../../kernel/jobs/index.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import { Administration } from '../test/administration.ts';
import { readPagesWhileChanging } from '../test/read-pages.ts';
import { AuditLog } from './audit-log.ts';
import { auditMigrations } from './migrations.ts';
import type { AuditTables } from './tables.ts';

type Entry = Readonly<Record<string, unknown>>;

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('GET /audit_log of the admin API', () => {
    let server: TestServer;
    let admin: Administration;
    let ben: TestClient;
    const lines: Record<string, unknown>[] = [];
    before(async () => {
      const write = (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>);
      server = await startTestServer({ database: kind, log: pino({ level: 'info' }, { write }) });
      admin = await Administration.open(server);
      await TestClient.register(server, 'anna');
      ben = await TestClient.register(server, 'ben');
      await admin.do('PUT', '/v2/users/@anna:test', { password: 'new secret', displayname: 'Anna' });
      await admin.do('GET', '/v2/users/@anna:test', undefined, { secret: 'in the query' });
      await admin.refused('POST', '/v1/users/@unknown:test/login', {});
      await admin.do('DELETE', '/v2/users/@ben:test/devices/A\0B');
      await admin.do('POST', '/v1/registration_tokens/new', { token: 'hidden-token' });
      await admin.do('DELETE', '/v1/registration_tokens/hidden-token');
    });
    after(() => server.stop());

    const list = async (query: Record<string, string | number | boolean> = {}) => {
      const { entries, ...rest } = await admin.do('GET', '/v1/audit_log', undefined, {
        until_ts: 9e15,
        ...query,
      });
      return { entries: entries as Entry[], ...rest } as {
        entries: Entry[];
        total: number;
        next_token?: string;
      };
    };
    const operations = async (query: Parameters<typeof list>[0]) =>
      (await list(query)).entries.map(({ operation }) => operation);

    it('lists each request of administrators with its operation, target and status, the newest first', async () => {
      const { entries } = await list();
      const [newest] = entries;
      const { id, ts, last_ts: last, ip, ...rest } = newest!;
      assert.equal(last, ts);
      assert.ok(Number(id) > 0 && Number(ts) > 1e12 && /127\.0\.0\.1|::1/.test(String(ip)));
      assert.deepEqual(rest, {
        admin: '@admin:test',
        method: 'DELETE',
        path: '/_server/admin/v1/registration_tokens/{token}',
        operation: 'deleteRegistrationToken',
        target: '<secret>',
        status: 200,
        requests: 1,
      });
      assert.deepEqual(
        entries.slice(1, 6).map(({ operation, target, status }) => [operation, target, status]),
        [
          ['createRegistrationToken', null, 200],
          ['deleteUserDevice', '@ben:test AB', 200],
          ['logInAsUser', '@unknown:test', 404],
          ['getUser', '@anna:test', 200],
          ['putUser', '@anna:test', 200],
        ],
      );
    });

    it('stores no passwords, tokens, request bodies or query parameters', async () => {
      const stored = JSON.stringify(await list({ limit: 1000 }));
      assert.doesNotMatch(stored, /new secret|hidden-token|in the query|Anna/);
    });

    it('logs administrator, action, target, IP address and status of each request, but no secrets', () => {
      const written = lines
        .filter(({ logger }) => logger === 'admin')
        .map(({ administrator, action, target, ip, status, errcode }) => [
          administrator,
          action,
          target,
          ip,
          status,
          errcode,
        ]);
      const expected = [
        ['PUT /_server/admin/v2/users/:userId', { userId: '@anna:test' }, 200, undefined],
        ['POST /_server/admin/v1/users/:userId/login', { userId: '@unknown:test' }, 404, 'M_NOT_FOUND'],
        ['DELETE /_server/admin/v1/registration_tokens/:token', { token: '<secret>' }, 200, undefined],
      ].map(([action, target, status, errcode]) => [
        '@admin:test',
        action,
        target,
        '127.0.0.1',
        status,
        errcode,
      ]);
      for (const line of expected) {
        assert.ok(
          written.some((found) => JSON.stringify(found) === JSON.stringify(line)),
          `${JSON.stringify(line)} in ${JSON.stringify(written)}`,
        );
      }
      assert.doesNotMatch(JSON.stringify(lines), /new secret|hidden-token|in the query/);
    });

    it('lists the registrations with the shared secret', async () => {
      const { entries } = await list({ operation: 'registerBySharedSecret' });
      assert.deepEqual(
        entries.map((entry) => [entry['admin'], entry['target'], entry['status']]),
        [['<registration_shared_secret>', '@admin:test', 200]],
      );
    });

    it('filters entries by administrator, method, operation, target, status, IP address, time, and by whether they may have changed something', async () => {
      const oldestFirst = (await list({ dir: 'f' })).entries;
      assert.deepEqual(await operations({ target: '@anna:test' }), ['getUser', 'putUser']);
      assert.deepEqual(await operations({ target: '@ben:test' }), ['deleteUserDevice']);
      assert.deepEqual(await operations({ target: 'ben' }), []);
      assert.deepEqual(await operations({ target: '@BEN:test' }), []);
      assert.deepEqual(await operations({ status: 404 }), ['logInAsUser']);
      assert.deepEqual(await operations({ method: 'PUT' }), ['putUser']);
      assert.deepEqual(await operations({ operation: 'getUser' }), ['getUser']);
      assert.deepEqual(await operations({ admin: '@anna:test' }), []);
      assert.deepEqual(await operations({ ip: '192.0.2.1' }), []);
      assert.equal((await list({ admin: '@admin:test', changes: true })).total, 5);
      assert.equal(
        (await operations({ changes: false, until_ts: Number(oldestFirst[2]!['ts']) + 1 }))[0],
        'getUser',
      );
      assert.deepEqual((await list({ from_ts: 9e15 })).entries, []);
    });

    it('continues after the last entry of a page although new entries are stored between two requests', async () => {
      const whole = await operations({ changes: true });
      const paged: unknown[] = [];
      for (let from: string | undefined, more = true; more; ) {
        const page = await list({ changes: true, limit: 2, ...(from !== undefined && { from }) });
        paged.push(...page.entries.map(({ operation }) => operation));
        from = page.next_token;
        more = page.next_token !== undefined;
        await admin.refused('POST', '/v1/users/@unknown:test/login', {});
      }
      assert.deepEqual(paged, whole);
      assert.deepEqual(
        (await operations({ changes: true, dir: 'f', limit: 1 }))[0],
        'registerBySharedSecret',
      );
    });

    it('names the administrator who logged in as another administrator', async () => {
      await admin.do('PUT', '/v1/users/@anna:test/admin', { admin: true });
      const { access_token: token } = await admin.do('POST', '/v1/users/@anna:test/login', {});
      const path = '/_synapse/admin/v1/registration_tokens';
      assert.equal((await server.api('GET', path, { token: String(token) })).status, 200);
      const [newest] = (await list({ operation: 'listRegistrationTokens' })).entries;
      assert.equal(newest?.['admin'], '@admin:test');
    });

    it('lists the requests of users who are not administrators, and invalid requests of administrators', async () => {
      const path = '/_synapse/admin/v1/deactivate/@anna:test';
      assert.equal((await ben.request('POST', path, { erase: 'maybe' })).status, 403);
      await admin.refused('POST', '/v1/deactivate/@anna:test', { erase: 'maybe' });
      const { entries } = await list({ operation: 'deactivateUser' });
      assert.deepEqual(
        entries.map((entry) => [entry['admin'], entry['target'], entry['status']]),
        [
          ['@admin:test', '@anna:test', 400],
          ['@ben:test', '@anna:test', 403],
        ],
      );
      assert.equal((await list({ operation: 'deactivateUser', changes: true })).total, 1);
    });

    it('lists GET /admin/whois requests of administrators about other users, and not about themselves', async () => {
      const whois = '/_matrix/client/v3/admin/whois';
      for (const userId of ['@ben:test', '@admin:test'])
        assert.equal((await admin.admin.request('GET', `${whois}/${userId}`, undefined)).status, 200);
      const { entries } = await list({ operation: 'getWhoIs' });
      assert.deepEqual(
        entries.map((entry) => [entry['admin'], entry['target'], entry['path']]),
        [['@admin:test', '@ben:test', '/_proto/client/v3/admin/whois/{userId}']],
      );
    });

    it('counts equal read requests of an hour in one entry', async () => {
      for (let repeated = 0; repeated < 3; repeated += 1) await admin.do('GET', '/v1/overview');
      await admin.do('GET', '/v1/users/@anna:test/admin');
      const [entry, ...others] = (await list({ operation: 'getOverview' })).entries;
      assert.deepEqual([entry?.['requests'], others], [3, []]);
      assert.ok(Number(entry?.['last_ts']) >= Number(entry?.['ts']));
    });

    it('lists a request with the user whom its body names as the target', async () => {
      const assertNotFound = async (path: string, body: object) =>
        assert.deepEqual(await admin.refused('POST', path, body), [404, 'M_NOT_FOUND'], path);
      await assertNotFound('/v1/rooms/!none:test/make_room_admin', { user_id: '@ben:test' });
      await assertNotFound('/v1/rooms/!none:test/make_room_admin', {});
      await assertNotFound('/v1/account_validity/validity', { user_id: '@unknown:test', expiration_ts: 1 });
      const { entries } = await list({ limit: 3 });
      assert.deepEqual(
        entries.map(({ operation, target, status }) => [operation, target, status]),
        [
          ['renewAccount', '@unknown:test', 404],
          ['makeRoomAdmin', '!none:test', 404],
          ['makeRoomAdmin', '!none:test @ben:test', 404],
        ],
      );
      assert.deepEqual(await operations({ target: '@ben:test', status: 404 }), ['makeRoomAdmin']);
    });

    it('lists requests from before a restart of the server', async () => {
      await server.restart();
      assert.deepEqual(await operations({ operation: 'putUser' }), ['putUser']);
    });
  });
});

forSelectedDatabases(import.meta.url, (open) => {
  describe('AuditLog', () => {
    it('lists each entry once when entries are added, counted again and deleted between two pages', async () => {
      const database = await open([...jobMigrations, ...auditMigrations]);
      const clock = manualClock();
      const jobs = new Jobs({ database, clock, log: silentLogger, isOnlyProcess: true });
      const audit = new AuditLog({ database, clock, log: silentLogger, jobs });
      const entry = { administrator: '@admin:test', path: '/', operation: 'x', status: 200, ip: '::1' };
      const record = (target: string, method = 'PUT') => audit.record({ ...entry, target, method });
      for (const oldestFirst of [true, false]) {
        const permanent = ['a', 'b', 'c', 'd', 'e', 'f'];
        for (const target of permanent) {
          await record('passing');
          await record(target, 'GET');
        }
        const keys = await readPagesWhileChanging(
          async (from) => {
            const after = from === undefined ? undefined : Number(from);
            const rows = await audit.page({}, { after, limit: 3, oldestFirst });
            return {
              keys: rows.map(({ target }) => String(target)),
              next: rows.length < 3 ? undefined : rows.at(-1)!.id,
            };
          },
          async () => {
            // Entries of GET requests are counted again, and entries of other requests are deleted except the newest.
            for (const target of permanent) await record(target, 'GET');
            await audit.trim({ maxAge: 1_000_000, maxEntries: 6 });
            await database.transaction<AuditTables, unknown>((writer) =>
              writer.deleteFrom('audit_log').where('target', '=', 'passing').execute(),
            );
            await record('passing');
          },
        );
        assert.deepEqual(
          keys.filter((key) => key !== 'passing'),
          oldestFirst ? permanent : permanent.toReversed(),
        );
        await audit.trim({ maxAge: -1, maxEntries: 0 });
        clock.advance(3_600_000);
      }
    });

    it('counts equal read requests of an hour in one entry, and deletes entries above the maximum age or the maximum number', async () => {
      const database = await open([...jobMigrations, ...auditMigrations]);
      const clock = manualClock();
      const jobs = new Jobs({ database, clock, log: silentLogger, isOnlyProcess: true });
      const audit = new AuditLog({ database, clock, log: silentLogger, jobs });
      let requests = 0;
      const record = (method: string, status: number) =>
        audit.record({
          administrator: '@admin:test',
          path: '/',
          operation: 'x',
          target: `${++requests}`,
          ip: '::1',
          method,
          status,
        });
      const read = {
        administrator: '@a:test',
        method: 'GET',
        path: '/',
        operation: 'x',
        target: null,
        status: 200,
      };
      for (const later of [0, 3_599_999, 1]) {
        clock.advance(later);
        await Promise.all([audit.record({ ...read, ip: '::2' }), audit.record({ ...read, ip: '::2' })]);
      }
      const counted = await audit.page({ ip: '::2' }, { after: undefined, limit: 10, oldestFirst: true });
      assert.deepEqual(
        counted.map(({ ts, last_ts: last, requests }) => [requests, last - ts]),
        [
          [4, 3_599_999],
          [2, 0],
        ],
      );
      await audit.trim({ maxAge: -1, maxEntries: 0 });
      await record('PUT', 1);
      clock.advance(1_000);
      await Promise.all([2, 3, 4, 5].map((status) => record(status % 2 ? 'GET' : 'PUT', status)));
      await Promise.all(Array.from({ length: 250 }, () => record('GET', 6)));
      await audit.trim({ maxAge: 500, maxEntries: 1_000 });
      const statuses = async () =>
        (await audit.page({}, { after: undefined, limit: 1_000, oldestFirst: true })).map(
          ({ status }) => status,
        );
      assert.deepEqual((await statuses()).slice(0, 5), [2, 3, 4, 5, 6]);
      assert.equal(await audit.count({}), 254);
      await audit.trim({ maxAge: 500, maxEntries: 1 });
      assert.deepEqual(await statuses(), [4, 6]);
    });
  });
});
