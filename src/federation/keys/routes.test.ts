import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { newSigningKey } from '../../../test/support/inputs/signing-key.ts';
import { validateResponse } from '../../../test/support/matrix-spec/matrix-spec.ts';
import { type LoopbackServer, serveOnLoopback } from '../../../test/support/network/loopback.ts';
import { commonTestAuthority, type TestAuthority } from '../../../test/support/network/test-authority.ts';
import { openTestFederation, type TestFederation } from '../../../test/support/other-servers/federation.ts';
import type { KeyTables } from '../../federation-client/keys/tables.ts';
import { systemClock } from '../../kernel/clock.ts';
import { createHttpServer, type HttpServer } from '../../kernel/http/index.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import {
  canonicalJson,
  isJsonObject,
  type JsonObject,
  signJson,
  type VerifyKey,
  verifyJson,
} from '../../protocol/index.ts';
import { keyRoutes } from '../index.ts';
import { Notary } from './notary.ts';

const ownKey = newSigningKey('own');
const notaryKey = newSigningKey('notary');
const aKey = newSigningKey('a');
const oldKey = newSigningKey('old');
const hour = 3_600_000;

forSelectedDatabases(import.meta.url, (open) => {
  describe('key endpoints for other servers', () => {
    let authority: TestAuthority;
    let ownServer: TestFederation;
    let keyServer: LoopbackServer & { name: string };
    let http: HttpServer;
    let base: string;
    let requestCount = 0;
    let isReachable = true;
    let currentKey = aKey;
    before(async () => {
      authority = commonTestAuthority();
      const old = { 'ed25519:old': { key: oldKey.publicKey.base64, expired_ts: 1_000 } };
      const options = { old_signing_keys: old, key_refresh_interval: 2 * hour };
      ownServer = await openTestFederation({ name: 'here.example', key: ownKey, authority, open, options });
      const server = await serveOnLoopback((_request, response) => {
        requestCount++;
        const content = {
          server_name: keyServer.name,
          verify_keys: { [currentKey.keyId]: { key: currentKey.publicKey.base64 } },
          valid_until_ts: ownServer.clock.now() + 2 * hour,
          more: 1,
        };
        response.writeHead(isReachable ? 200 : 500, { 'content-type': 'application/json' });
        response.end(JSON.stringify(signJson(content, keyServer.name, currentKey)));
      }, authority.issue('a.example'));
      keyServer = { ...server, name: `a.example:${server.port}` };
      http = createHttpServer({
        listeners: [
          {
            name: 'main',
            bind: { kind: 'tcp', port: 0, addresses: ['127.0.0.1'], tls: undefined },
            resources: [{ names: ['federation'], compress: false }],
            forwarded: false,
            requestIdHeader: undefined,
          },
        ],
        routes: keyRoutes({ ...ownServer, notaryKeys: [notaryKey] }),
        authenticator: { authenticate: () => assert.fail('no client logs in') },
        log: silentLogger,
        clock: systemClock,
      });
      [base = ''] = await http.start();
    });
    after(async () => {
      await http.stop(100);
      await ownServer.close();
      await keyServer.close();
      authority.remove();
    });

    async function call(method: 'GET' | 'POST', path: string, body?: object) {
      const response = await fetch(`${base}/_matrix/key/v2${path}`, {
        method,
        ...(body && { body: JSON.stringify(body) }),
      });
      assert.equal(response.headers.get('cache-control'), 'no-store');
      const text = await response.text();
      const json = JSON.parse(text) as Record<string, unknown>;
      if (response.status === 200) assert.equal(text, canonicalJson(json as JsonObject));
      const specified = path.replace(/\/server\/.*/, '/server');
      assert.deepEqual(
        validateResponse(method, `/_matrix/key/v2${specified}`, response.status, json).problems,
        [],
      );
      return { status: response.status, json };
    }
    const isSigned = (json: unknown, name: string, by: { keyId: string; publicKey: VerifyKey }) =>
      isJsonObject(json) &&
      verifyJson(json, name, (keyId) => (keyId === by.keyId ? by.publicKey : undefined));
    const listed = (json: Record<string, unknown>) => json['server_keys'] as JsonObject[];

    it('publishes signed current and old keys [option: old_signing_keys.*.key, old_signing_keys.*.expired_ts, key_refresh_interval]', async () => {
      for (const path of ['/server', '/server/ed25519:own']) {
        const { json } = await call('GET', path);
        assert.deepEqual(json['verify_keys'], { 'ed25519:own': { key: ownKey.publicKey.base64 } });
        const old = { key: oldKey.publicKey.base64, expired_ts: 1_000 };
        assert.deepEqual(json['old_verify_keys'], { 'ed25519:old': old });
        assert.equal(json['valid_until_ts'], ownServer.clock.now() + 2 * hour);
        assert.equal(isSigned(json, 'here.example', ownKey), true);
      }
    });

    it("returns keys of other servers with the notary's signature", async () => {
      const { json } = await call('GET', `/query/${keyServer.name}`);
      const [response, ...furtherResponses] = listed(json);
      assert.equal(furtherResponses.length, 0);
      assert.equal(response?.['more'], 1);
      assert.equal(isSigned(response, keyServer.name, aKey), true);
      assert.equal(isSigned(response, 'here.example', notaryKey), true);
      assert.equal(requestCount, 1);
    });

    it('refreshes keys after half of their validity or for a later minimum_valid_until_ts, and returns stored keys of an unreachable server', async () => {
      const validUntil = (json: Record<string, unknown>) => listed(json)[0]?.['valid_until_ts'];
      await call('GET', `/query/${keyServer.name}`);
      assert.equal(requestCount, 1);
      ownServer.clock.advance(hour + 1);
      await call('GET', `/query/${keyServer.name}`);
      assert.equal(requestCount, 2);
      const until = ownServer.clock.now() + 2 * hour;
      ownServer.clock.advance(6_000);
      const later = await call('GET', `/query/${keyServer.name}?minimum_valid_until_ts=${until + 1}`);
      assert.equal(requestCount, 3);
      assert.equal(validUntil(later.json), ownServer.clock.now() + 2 * hour);
      isReachable = false;
      ownServer.clock.advance(24 * hour);
      const gone = await call('GET', `/query/${keyServer.name}`);
      assert.equal(validUntil(gone.json), validUntil(later.json));
      assert.equal(requestCount, 4);
      isReachable = true;
      ownServer.clock.advance(hour);
    });

    it('returns keys of several servers in one response, including the keys of this server', async () => {
      const { json } = await call('POST', '/query', {
        server_keys: {
          [keyServer.name]: { 'ed25519:a': { minimum_valid_until_ts: ownServer.clock.now() } },
          'here.example': {},
          'gone.example': { 'ed25519:x': {} },
          'no server/name': {},
        },
      });
      assert.deepEqual(
        listed(json).map((one) => one['server_name']),
        [keyServer.name, 'here.example'],
      );
      for (const one of listed(json)) assert.equal(isSigned(one, 'here.example', notaryKey), true);
      assert.deepEqual(listed((await call('POST', '/query', { server_keys: {} })).json), []);
    });

    it('requests the keys of a server again at once when a query has an unknown key id or a later minimum_valid_until_ts, but only a few times in a row', async () => {
      ownServer.clock.advance(hour);
      const query = (keyId: string, time?: number) =>
        call('POST', '/query', {
          server_keys: {
            [keyServer.name]: { [keyId]: time === undefined ? {} : { minimum_valid_until_ts: time } },
          },
        });
      const keysIn = (json: Record<string, unknown>) =>
        listed(json).map((one) => Object.keys(one['verify_keys'] as object));
      assert.deepEqual(keysIn((await query('ed25519:a')).json), [['ed25519:a']]);
      const before = requestCount;
      currentKey = newSigningKey('rotated');
      assert.deepEqual(keysIn((await query('ed25519:rotated')).json), [['ed25519:rotated']]);
      assert.equal(requestCount, before + 1);
      const until = ownServer.clock.now() + 2 * hour;
      await query('ed25519:rotated', until);
      assert.equal(requestCount, before + 1);
      ownServer.clock.advance(1);
      const later = (await query('ed25519:rotated', until + 1)).json;
      assert.equal(listed(later)[0]?.['valid_until_ts'], until + 1);
      assert.equal(requestCount, before + 2);
      ownServer.clock.advance(1);
      const path = `/query/${keyServer.name}/ed25519:rotated?minimum_valid_until_ts=${until + 2}`;
      const response = await fetch(`${base}/_matrix/key/v2${path}`);
      const shown = (await response.json()) as Record<string, unknown>;
      assert.equal(listed(shown)[0]?.['valid_until_ts'], until + 2);
      assert.equal(requestCount, before + 3);
      for (let i = 3; i < 30; i++) {
        ownServer.clock.advance(1);
        await query('ed25519:rotated', until + i);
      }
      assert.ok(requestCount <= before + 6);
      currentKey = aKey;
      ownServer.clock.advance(hour);
    });

    it('sends at most one request for many unknown key ids', async () => {
      const before = requestCount;
      for (let i = 0; i < 10; i++) {
        await call('POST', '/query', { server_keys: { [keyServer.name]: { [`ed25519:made_up_${i}`]: {} } } });
      }
      assert.ok(requestCount <= before + 1);
    });

    it('rejects malformed queries and queries for too many servers with 400', async () => {
      const many = Object.fromEntries(Array.from({ length: 1_001 }, (_, i) => [`s${i}.example`, {}]));
      for (const body of [{}, { server_keys: [] }, { server_keys: { a: [] } }, { server_keys: many }]) {
        assert.equal((await call('POST', '/query', body)).status, 400);
      }
      assert.equal((await call('GET', `/query/${keyServer.name}?minimum_valid_until_ts=soon`)).status, 400);
    });

    it('sends no further requests to servers for a client that has disconnected', async () => {
      const before = requestCount;
      ownServer.clock.advance(hour);
      const notary = new Notary({ ...ownServer, notaryKeys: [notaryKey] });
      const refresh = (signal: AbortSignal) =>
        notary.refresh([{ serverName: keyServer.name, keys: [] }], signal, () => true);
      await refresh(AbortSignal.abort());
      assert.equal(requestCount, before);
      await refresh(new AbortController().signal);
      assert.equal(requestCount, before + 1, 'a client that is connected causes a request');
    });

    it('sends requests to at most 40 servers for one query, and to none when the limits of the IP address do not permit it', async () => {
      const lookedUpHosts = () =>
        new Set(ownServer.resolver.lookedUpNames.filter((name) => name.startsWith('invented'))).size;
      const invented = Array.from({ length: 900 }, (_, index) => [`invented${index}.example`, {}]);
      const { status } = await call('POST', '/query', { server_keys: Object.fromEntries(invented) });
      assert.equal(status, 200);
      const first = lookedUpHosts();
      assert.ok(first >= 30 && first <= 40, String(first));
      const notary = new Notary({ ...ownServer, notaryKeys: [notaryKey] });
      const names = Array.from({ length: 100 }, (_, index) => `invented-${index}.example`);
      const before = lookedUpHosts();
      await notary.refresh(
        names.map((serverName) => ({ serverName, keys: [] })),
        new AbortController().signal,
        () => false,
      );
      assert.equal(lookedUpHosts(), before);
    });

    it('reads and signs a long answer in pieces, and bounds its bytes', async () => {
      const names = Array.from({ length: 400 }, (_, index) => `s${index}.example`);
      const text = (name: string) =>
        JSON.stringify({
          server_name: name,
          verify_keys: {},
          valid_until_ts: 1,
          padding: '.'.repeat(30_000),
        });
      const now = ownServer.clock.now();
      const times = { valid_until_ts: now + 2 * hour, expired_ts: null, fetched_ts: now };
      await ownServer.database.transaction<KeyTables, void>(async (writer) => {
        for (const name of names) {
          const ids = { server_name: name, response_id: 'one' };
          const response = { ...ids, text: text(name), fetched_ts: now };
          await writer.insertInto('server_key_responses').values(response).execute();
          const key = { ...ids, key_id: 'ed25519:a', public_key: aKey.publicKey.base64, ...times };
          await writer.insertInto('server_keys').values(key).execute();
        }
      });
      const criteria = names.map((serverName) => ({ serverName, keys: [] }));
      const notary = new Notary({ ...ownServer, notaryKeys: [notaryKey] });
      const reads = () => ownServer.database.statistics.reads;
      const before = reads();
      const pieces = notary.responses(criteria);
      const first = (await pieces.next()).value as readonly string[];
      assert.ok(first.join().length < 1_048_576, String(first.join().length));
      assert.ok(reads() - before <= 16, String(reads() - before));
      const { json } = await call('POST', '/query', {
        server_keys: Object.fromEntries(names.map((name) => [name, {}])),
      });
      assert.equal(isSigned(listed(json)[0], 'here.example', notaryKey), true);
      const bytes = JSON.stringify(json).length;
      assert.ok(bytes > 7 * 1_048_576 && bytes < 8.1 * 1_048_576, String(bytes));
    });

    it('answers 429 when one IP address queries the keys of very many servers', async () => {
      const names = Array.from({ length: 1_000 }, (_, index) => [`no server/name ${index}`, {}]);
      const query = () => call('POST', '/query', { server_keys: Object.fromEntries(names) });
      const statuses: number[] = [];
      for (let count = 0; count < 11; count++) statuses.push((await query()).status);
      assert.deepEqual([statuses[0], statuses.at(-1)], [200, 429]);
    });
  });
});
