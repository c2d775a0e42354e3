import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import { type Route, toEcosystemSpelling } from '../../src/kernel/http/index.ts';
import { cheapestCost } from '../support/clocks/longest-turn.ts';
import { isThorough } from '../support/inputs/thoroughness.ts';
import { startTestServer, type TestServer, type TestUser } from '../support/servers/server.ts';
import { fillings, largestBody } from './largest-bodies.ts';

/** Bytes of the body of a route that has no limit of its own. */
const usualLimit = 512 * 1024;

/** Milliseconds of CPU that a request may cost, and that other requests may wait for it. */
const allowed = { total: 200, longest: 50 };

/** All ways to fill bodies take two minutes. */
const chosen = Object.entries(fillings).filter(([name]) => isThorough || name === 'list');

describe('the cost of requests', () => {
  let server: TestServer;
  let alice: TestUser;
  let roomId: string;
  let eventId: string;
  let count = 0;
  before(async () => {
    server = await startTestServer({ database: 'sqlite' });
    alice = await server.register('alice');
    const created = await server.api('POST', '/_matrix/client/v3/createRoom', {
      token: alice.token,
      body: {},
    });
    roomId = created.body['room_id'] as string;
    const path = `/_matrix/client/v3/rooms/${roomId}/send/m.room.message/first`;
    const sent = await server.api('PUT', path, {
      token: alice.token,
      body: { msgtype: 'm.text', body: 'x' },
    });
    eventId = sent.body['event_id'] as string;
  });
  after(() => server.stop());

  /** Fills in the parameters of a path. */
  const pathOf = ({ contract }: Route): string => {
    const path = typeof contract.path === 'string' ? contract.path : contract.path[0]!;
    const parameters: Readonly<Record<string, string>> = {
      roomId,
      roomIdOrAlias: roomId,
      eventId,
      userId: alice.userId,
      deviceId: alice.deviceId,
      txnId: `txn${count++}`,
      receiptType: 'm.read',
      kind: 'override',
      eventType: 'm.test',
      scope: 'global',
    };
    return toEcosystemSpelling(
      path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(parameters[name] ?? 'x')),
    );
  };

  const send = async (route: Route, body: Buffer): Promise<number> => {
    const { hostname, port } = new URL(server.baseUrl);
    const { method } = route.contract;
    const headers = {
      authorization: `Bearer ${alice.token}`,
      'content-type': 'application/json',
      'content-length': body.length,
    };
    const sent = request({ hostname, port, method, path: pathOf(route), headers });
    sent.end(body);
    const [response] = await once(sent, 'response');
    await text(response);
    return response.statusCode as number;
  };

  for (const [name, filling] of chosen) {
    it(`stays low with the largest bodies of each route, filled with ${name}`, async () => {
      const costs: string[] = [];
      for (const route of server.homeserver.routes) {
        const { contract } = route;
        const isWritten = contract.body !== undefined && contract.bodyMode === undefined;
        if (!isWritten || contract.auth === 'server' || endsSession.has(contract.operationId ?? '')) continue;
        const body = largestBody(contract, contract.bodyLimit ?? usualLimit, filling);
        let status = 0;
        const cost = await cheapestCost(allowed, async () => {
          status = await send(route, body);
        });
        assert.ok(status < 500 || status === 502, `${contract.operationId} answers ${status}`);
        if (cost.total > allowed.total || cost.longest > allowed.longest) {
          costs.push(
            `${contract.operationId}: ${Math.round(cost.total)} ms, ${Math.round(cost.longest)} at a time`,
          );
        }
      }
      assert.deepEqual(costs, []);
    });
  }
});

/** Operations that end the session of the test's user. */
const endsSession: ReadonlySet<string> = new Set([
  'logout',
  'logout_all',
  'deactivateAccount',
  'deleteDevices',
  'changePassword',
]);
