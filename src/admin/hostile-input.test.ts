import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../../test/clients/eventually.ts';
import { type DatabaseContents, openContents } from '../../test/support/databases/database-contents.ts';
import { forPostgres } from '../../test/support/databases/databases.ts';
import type { ContractSchema } from '../../test/support/inputs/contract-schema.ts';
import { generalErrcodes } from '../../test/support/matrix-spec/errcodes.ts';
import { startTestServer, type TestServer } from '../../test/support/servers/server.ts';
import { enc, TestClient } from '../../test/support/users/test-client.ts';
import { pathsOf, type Route } from '../kernel/http/index.ts';
import { Administration } from './test/administration.ts';

/** Values for texts and integers that PostgreSQL rejects in parameters of statements. */
const hostile = { text: 'a\0b', integers: [1e300, -1e300, 2 ** 53, Number.MAX_SAFE_INTEGER, 2 ** 31] };

/**
 * Path parameters with U+0000 that are otherwise valid. Path parameters with other names have the value `hostile.text`.
 */
const hostilePath: Readonly<Record<string, string>> = {
  userId: '@a\0b:test',
  roomId: '!a\0b:test',
  roomIdOrAlias: '#a\0b:test',
  eventId: '$a\0b',
};

/** Tables whose rows a refused request must leave as they are. */
const unchangedTables = [
  'users',
  'access_tokens',
  'login_tokens',
  'profile_fields',
  'external_ids',
  'third_party_ids',
  'account_validity',
  'rate_limit_overrides',
  'registration_tokens',
  'blocked_rooms',
  'room_aliases',
  'reports',
  'local_media',
  'quarantine_changes',
];

/** Tables to which a refused request must not add rows. Every request changes columns of devices. */
const countedTables = ['devices', 'rooms', 'events'];

/** Returns the rows of `unchangedTables` and the numbers of rows of `countedTables`, by table. */
async function readState(contents: DatabaseContents): Promise<ReadonlyMap<string, string>> {
  const state = new Map<string, string>();
  for (const table of unchangedTables) {
    const rows = (await contents.rows(table)).map((row) => JSON.stringify(row));
    state.set(table, rows.sort().join('\n'));
  }
  for (const table of countedTables) state.set(table, String((await contents.rows(table)).length));
  return state;
}

/**
 * Waits until the jobs of accepted requests are done, because they may change the same tables. Does not wait for
 * recurring jobs, which have an empty key.
 */
const jobsDone = (contents: DatabaseContents) =>
  eventually('the jobs of accepted requests', async () =>
    (await contents.rows('jobs')).every(
      ({ key, state, run_at: runAt }) =>
        key === '' || state !== 'waiting' || Number(runAt) > Date.now() + 60_000,
    ),
  );

// Runs on PostgreSQL only, because SQLite accepts the values of `hostile`.
forPostgres(() => {
  describe('routes of the admin API', () => {
    let server: TestServer;
    let admin: Administration;
    let contents: DatabaseContents;
    let routes: readonly Route[];
    let validParameters: Readonly<Record<string, string>>;
    before(async () => {
      server = await startTestServer({ database: 'postgres' });
      admin = await Administration.open(server);
      contents = await openContents(server.databaseOptions);
      const anna = await TestClient.register(server, 'anna');
      const roomId = await anna.createRoom();
      validParameters = {
        userId: anna.id,
        roomId,
        roomIdOrAlias: roomId,
        eventId: await anna.say(roomId, 'x'),
        serverName: 'test',
        medium: 'email',
      };
      // Deletions come last, because other requests about what they have deleted fail early.
      const order = ['GET', 'PUT', 'POST', 'DELETE'];
      routes = server.homeserver.routes
        .filter(
          (route) => route.contract.auth === 'admin' && pathsOf(route)[0]!.startsWith('/_server/admin/'),
        )
        .toSorted((one, other) => order.indexOf(one.contract.method) - order.indexOf(other.contract.method));
    });
    after(async () => {
      await contents.close();
      await server.stop();
    });

    const pathOf = (route: Route, params: Readonly<Record<string, string>>) =>
      pathsOf(route)[0]!
        .replace('/_server/admin', '')
        .replaceAll(/:(\w+)/g, (_, name: string) => enc(params[name] ?? hostile.text));
    const failures: string[] = [];
    /** The state of the tables after the last request; `undefined` after an accepted request that may have changed them. */
    let known: ReadonlyMap<string, string> | undefined;
    const check = async (route: Route, path: string, body: unknown, query?: Record<string, string>) => {
      const { method } = route.contract;
      if (known === undefined) await jobsDone(contents);
      const before = known ?? (await readState(contents));
      const answer = await admin.call(method, path, method === 'GET' ? undefined : body, query);
      const fail = (problem: string) =>
        failures.push(`${problem}: ${method} ${path} ${JSON.stringify({ body, query })}`);
      if (answer.status >= 500) fail(`status ${answer.status}`);
      known = method === 'GET' ? before : undefined;
      if (answer.status < 400) return;
      const errcode = String(answer.body['errcode']);
      if (answer.status < 500 && !generalErrcodes.has(errcode)) fail(`errcode ${errcode}`);
      known = await readState(contents);
      for (const [table, rows] of known) if (before.get(table) !== rows) fail(`changed ${table}`);
    };
    const propertiesOf = (schema: unknown) =>
      Object.entries((schema as ContractSchema | undefined)?.properties ?? {});

    it('answers paths with U+0000 without a 500; refusals have an errcode of the specification and change nothing', async () => {
      for (const route of routes) {
        const body = valueFor(route.contract.body as ContractSchema | undefined, 'x', 1_000);
        await check(route, pathOf(route, hostilePath), body);
      }
      assert.deepEqual(failures.splice(0), []);
    });

    it('answers queries with U+0000 and very large integers without a 500; refusals have an errcode of the specification and change nothing', async () => {
      for (const route of routes) {
        for (const [name, schema] of propertiesOf(route.contract.query)) {
          const values = schema.type === 'integer' ? hostile.integers.map(String) : [hostile.text];
          for (const value of values)
            await check(route, pathOf(route, validParameters), {}, { [name]: value });
        }
      }
      assert.deepEqual(failures.splice(0), []);
    });

    it('answers bodies with U+0000 and very large integers without a 500; refusals have an errcode of the specification and change nothing', async () => {
      for (const route of routes) {
        const { body } = route.contract;
        if (body === undefined) continue;
        for (const integer of hostile.integers) {
          const whole = valueFor(body as ContractSchema, hostile.text, integer);
          await check(route, pathOf(route, validParameters), whole);
        }
      }
      assert.deepEqual(failures.splice(0), []);
    });
  });
});

/**
 * Returns a value of the shape that a schema describes, with the given text and integer in its fields even if the schema
 * does not allow them. All user ids in it name an existing user.
 */
function valueFor(schema: ContractSchema | undefined, text: string, integer: number): unknown {
  if (schema === undefined) return {};
  if (schema.const !== undefined) return schema.const;
  if (schema.anyOf) return valueFor(schema.anyOf[0], text, integer);
  switch (schema.type) {
    case 'string':
      return text;
    case 'integer':
    case 'number':
      return integer;
    case 'boolean':
      return true;
    case 'array':
      return [valueFor(schema.items as ContractSchema, text, integer)];
    default:
      return Object.fromEntries(
        Object.entries(schema.properties ?? {}).map(([name, one]) => [
          name,
          name.endsWith('user_id') ? '@anna:test' : valueFor(one, text, integer),
        ]),
      );
  }
}
