import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { newSigningKey } from '../../../test/support/inputs/signing-key.ts';
import { runs } from '../../../test/support/inputs/thoroughness.ts';
import { serveOnLoopback } from '../../../test/support/network/loopback.ts';
import { makeTestAuthority, type TestAuthority } from '../../../test/support/network/test-authority.ts';
import { openTestFederation, type TestFederation } from '../../../test/support/other-servers/federation.ts';
import { isEventId, type JsonValue } from '../../protocol/index.ts';
import { MalformedResponse } from '../index.ts';
import { EventsApi } from './events-api.ts';

const room = '!r/?:a.example';
const event = '$e/1';

forSelectedDatabases(import.meta.url, (open) => {
  describe('EventsApi', () => {
    let authority: TestAuthority;
    let federation: TestFederation;
    let server: Awaited<ReturnType<typeof serveOnLoopback>>;
    let api: EventsApi;
    let name: string;
    let answer: string;
    const requests: { method: string; url: string; body: string }[] = [];

    before(async () => {
      authority = makeTestAuthority();
      server = await serveOnLoopback(async (request: IncomingMessage, response) => {
        requests.push({ method: request.method!, url: request.url!, body: await text(request) });
        response.writeHead(200, { 'content-type': 'application/json' }).end(answer);
      }, authority.issue('a.example'));
      const key = newSigningKey('k');
      federation = await openTestFederation({ name: 'here.example', key, authority, open });
      api = new EventsApi(federation.requests);
      name = `a.example:${server.port}`;
    });
    after(async () => {
      await federation.close();
      await server.close();
      authority.remove();
    });

    /**
     * Calls a method while the server responds with `json`. Returns its result and the request that the server
     * received.
     */
    async function callWithResponse<T>(json: JsonValue, call: (server: string) => Promise<T>) {
      answer = JSON.stringify(json);
      requests.length = 0;
      const result = await call(name);
      return { result, request: requests[0] };
    }

    it('sends the requests of the specification and reads their responses', async () => {
      const path = '/_matrix/federation/v1';
      const [r, e] = [encodeURIComponent(room), encodeURIComponent(event)];
      const get = (url: string) => ({ method: 'GET', url: path + url, body: '' });
      const pdus = [{ type: 'x' }, 5];
      assert.deepEqual(await callWithResponse({ pdus: [{ a: 1 }] }, (to) => api.event(to, event)), {
        result: { a: 1 },
        request: get(`/event/${e}`),
      });
      const gap = { earliest: ['$a'], latest: ['$b', '$c'], limit: 10, minDepth: 4 };
      assert.deepEqual(await callWithResponse({ events: pdus }, (to) => api.missingEvents(to, room, gap)), {
        result: pdus,
        request: {
          method: 'POST',
          url: `${path}/get_missing_events/${r}`,
          body: '{"earliest_events":["$a"],"latest_events":["$b","$c"],"limit":10,"min_depth":4}',
        },
      });
      const ids = { pdu_ids: ['$a'], auth_chain_ids: ['$b'] };
      assert.deepEqual(await callWithResponse(ids, (to) => api.stateIds(to, room, event)), {
        result: { state: ['$a'], authChain: ['$b'] },
        request: get(`/state_ids/${r}?event_id=${e}`),
      });
      assert.deepEqual(await callWithResponse({ pdus, auth_chain: [] }, (to) => api.state(to, room, event)), {
        result: { state: pdus, authChain: [] },
        request: get(`/state/${r}?event_id=${e}`),
      });
      assert.deepEqual(await callWithResponse({ auth_chain: pdus }, (to) => api.eventAuth(to, room, event)), {
        result: pdus,
        request: get(`/event_auth/${r}/${e}`),
      });
      assert.deepEqual(await callWithResponse({ pdus }, (to) => api.backfill(to, room, ['$a', '$b'], 20)), {
        result: pdus,
        request: get(`/backfill/${r}?v=%24a&v=%24b&limit=20`),
      });
      const closest = { event_id: '$a', origin_server_ts: 7 };
      assert.deepEqual(
        await callWithResponse(closest, (to) => api.timestampToEvent(to, room, 5, 'backward')),
        {
          result: { eventId: '$a', originServerTs: 7 },
          request: get(`/timestamp_to_event/${r}?ts=5&dir=b`),
        },
      );
    });

    it('drops the events of a response beyond the requested number, and rejects a response to GET /event without exactly one event', async () => {
      const many = Array.from({ length: 21 }, (_, index) => ({ index }));
      const gap = { earliest: [], latest: [], limit: 20, minDepth: 0 };
      const missing = await callWithResponse({ events: many }, (to) => api.missingEvents(to, room, gap));
      assert.deepEqual(missing.result, many.slice(0, 20));
      const older = await callWithResponse({ pdus: many }, (to) => api.backfill(to, room, ['$a'], 20));
      assert.deepEqual(older.result, many.slice(0, 20));
      for (const pdus of [many, []]) {
        await assert.rejects(
          callWithResponse({ pdus }, (to) => api.event(to, event)),
          MalformedResponse,
        );
      }
    });

    it('returns values of the declared types or throws MalformedResponse, whatever the response is (property)', async () => {
      const value = fc.oneof(
        fc.jsonValue(),
        fc.array(fc.oneof(fc.jsonValue(), fc.constantFrom('$a', '$b:x', '$', 'a', '$\u0000'))),
        fc.constantFrom('$a', 7, -1, 1.5, 2 ** 53),
      ) as fc.Arbitrary<JsonValue>;
      const keys = [
        'pdus',
        'events',
        'pdu_ids',
        'auth_chain_ids',
        'auth_chain',
        'event_id',
        'origin_server_ts',
      ];
      const body = fc.dictionary(fc.constantFrom(...keys), value, { minKeys: 5 });
      const gap = { earliest: [], latest: [], limit: 3, minDepth: 0 };
      const isList = (result: unknown) => Array.isArray(result);
      const isIds = (result: unknown) => Array.isArray(result) && result.every(isEventId);
      const calls: readonly ((to: string) => Promise<boolean>)[] = [
        async (to) => isList(await api.missingEvents(to, room, gap)),
        async (to) => isList(await api.backfill(to, room, ['$a'], 3)),
        async (to) => isList(await api.eventAuth(to, room, event)),
        async (to) => (await api.event(to, event)) !== undefined,
        async (to) => {
          const { state, authChain } = await api.stateIds(to, room, event);
          return isIds(state) && isIds(authChain);
        },
        async (to) => Object.values(await api.state(to, room, event)).every(isList),
        async (to) => {
          const { eventId, originServerTs } = await api.timestampToEvent(to, room, 5, 'forward');
          return isEventId(eventId) && Number.isSafeInteger(originServerTs);
        },
      ];
      await fc.assert(
        fc.asyncProperty(body, fc.constantFrom(...calls), async (json, call) => {
          const outcome = await callWithResponse(json, call).catch((error: unknown) => error);
          if (outcome instanceof Error) assert.equal(outcome.name, 'MalformedResponse', outcome.stack);
          else assert.equal((outcome as { result: boolean }).result, true);
        }),
        { numRuns: runs(150) },
      );
    });
  });
});
