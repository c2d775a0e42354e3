import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forPostgres } from '../../test/support/databases/databases.ts';
import type { ContractSchema } from '../../test/support/inputs/contract-schema.ts';
import { startTestServer, type TestServer } from '../../test/support/servers/server.ts';
import { enc, TestClient } from '../../test/support/users/test-client.ts';
import { pathsOf, type Route } from '../kernel/http/index.ts';
import { Administration } from './test/administration.ts';

/** Values for texts and integers that PostgreSQL rejects in parameters of statements. */
const hostile = { text: 'a\0b', integers: [1e300, -1e300, 2 ** 53, Number.MAX_SAFE_INTEGER, 2 ** 31] };

/** Path parameters with U+0000 that are otherwise valid; all others are `hostile.text`. */
const hostilePath: Readonly<Record<string, string>> = {
  userId: '@a\0b:test',
  roomId: '!a\0b:test',
  roomIdOrAlias: '#a\0b:test',
  eventId: '$a\0b',
};

// Runs on PostgreSQL only, because SQLite accepts the values of `hostile`.
forPostgres(() => {
  describe('routes of the admin API', () => {
    let server: TestServer;
    let admin: Administration;
    let routes: readonly Route[];
    let validParameters: Readonly<Record<string, string>>;
    before(async () => {
      server = await startTestServer({ database: 'postgres' });
      admin = await Administration.open(server);
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
      // Deletions last, because they make the other requests fail early.
      const order = ['GET', 'PUT', 'POST', 'DELETE'];
      routes = server.homeserver.routes
        .filter(
          (route) => route.contract.auth === 'admin' && pathsOf(route)[0]!.startsWith('/_server/admin/'),
        )
        .toSorted((one, other) => order.indexOf(one.contract.method) - order.indexOf(other.contract.method));
    });
    after(() => server.stop());

    const pathOf = (route: Route, params: Readonly<Record<string, string>>) =>
      pathsOf(route)[0]!
        .replace('/_server/admin', '')
        .replaceAll(/:(\w+)/g, (_, name: string) => enc(params[name] ?? hostile.text));
    const failures: string[] = [];
    const check = async (route: Route, path: string, body: unknown, query?: Record<string, string>) => {
      const { method } = route.contract;
      const answer = await admin.call(method, path, method === 'GET' ? undefined : body, query);
      if (answer.status >= 500) failures.push(`${method} ${path} ${JSON.stringify({ body, query })}`);
    };
    const propertiesOf = (schema: unknown) =>
      Object.entries((schema as ContractSchema | undefined)?.properties ?? {});

    it('answers paths with U+0000 without a 500', async () => {
      for (const route of routes) {
        const body = valueFor(route.contract.body as ContractSchema | undefined, 'x', 1_000);
        await check(route, pathOf(route, hostilePath), body);
      }
      assert.deepEqual(failures.splice(0), []);
    });

    it('answers queries with U+0000 and very large integers without a 500', async () => {
      for (const route of routes) {
        for (const [name, schema] of propertiesOf(route.contract.query)) {
          const values = schema.type === 'integer' ? hostile.integers.map(String) : [hostile.text];
          for (const value of values)
            await check(route, pathOf(route, validParameters), {}, { [name]: value });
        }
      }
      assert.deepEqual(failures.splice(0), []);
    });

    it('answers bodies with U+0000 and very large integers without a 500', async () => {
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
