import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import { after, afterEach, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import type { Overrides } from '../../../test/support/inputs/section-defaults.ts';
import { newSigningKey } from '../../../test/support/inputs/signing-key.ts';
import { serveOnLoopback } from '../../../test/support/network/loopback.ts';
import {
  type Certificate,
  commonTestAuthority,
  type TestAuthority,
} from '../../../test/support/network/test-authority.ts';
import { openTestFederation } from '../../../test/support/other-servers/federation.ts';
import type { Database } from '../../kernel/database/index.ts';
import { type JsonObject, type SigningKey, signJson } from '../../protocol/index.ts';
import type { FederationClientConfig } from '../config.ts';
import type { KeyTables } from './tables.ts';

const hour = 3_600_000;
const ownKey = newSigningKey('own');
const aKey = newSigningKey('a');
const oldKey = newSigningKey('old');
const notaryKey = newSigningKey('n');
const strangersKey = newSigningKey('s');

type Listener = (request: IncomingMessage, response: ServerResponse) => unknown;

forSelectedDatabases(import.meta.url, (open) => {
  describe('KeyRing', () => {
    const opened: { close(): Promise<void> }[] = [];
    let authority: TestAuthority;
    let certificate: Certificate;
    before(() => {
      authority = commonTestAuthority();
      certificate = authority.issue('a.example', 'b.example');
    });
    after(() => authority.remove());
    afterEach(async () => {
      for (const one of opened.splice(0).reverse()) await one.close();
    });

    async function openFederation(options: Overrides<FederationClientConfig> = {}, database?: Database) {
      const federation = await openTestFederation({
        name: 'here.example',
        key: ownKey,
        authority,
        open,
        options,
        ...(database && { database }),
      });
      opened.push(federation);
      return federation;
    }

    async function serve(host: string, listener: Listener) {
      const server = await serveOnLoopback(
        (request, response) => void listener(request, response),
        certificate,
      );
      opened.push(server);
      return `${host}:${server.port}`;
    }

    const answer = (response: ServerResponse, body: object, status = 200) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));

    /** The response of a server with its keys: `ed25519:a`, and `ed25519:old` until time 5. */
    const keyResponse = (serverName: string, validUntil: number, key = aKey): JsonObject =>
      signJson(
        {
          server_name: serverName,
          verify_keys: { [key.keyId]: { key: key.publicKey.base64 } },
          old_verify_keys: { [oldKey.keyId]: { key: oldKey.publicKey.base64, expired_ts: 5 } },
          valid_until_ts: validUntil,
        },
        serverName,
        key,
      );

    /** Starts a server that publishes its keys. Returns its state, which a test may change. */
    async function serveOwner() {
      const state = {
        name: '',
        requestCount: 0,
        validUntil: 1_700_000_000_000 + 24 * hour,
        status: 200,
        key: aKey,
      };
      state.name = await serve('a.example', (request, response) => {
        state.requestCount++;
        assert.equal(request.url, '/_matrix/key/v2/server');
        answer(response, keyResponse(state.name, state.validUntil, state.key), state.status);
      });
      return state;
    }

    /** Starts a notary that signs with `key` and passes on the responses that `about` returns, after `pause`. */
    async function serveNotary(
      key: SigningKey,
      about: () => readonly JsonObject[],
      pause: () => Promise<void> = async () => undefined,
    ) {
      const state = { name: '', requests: [] as unknown[] };
      state.name = await serve('b.example', async (request, response) => {
        state.requests.push(await json(request));
        await pause();
        answer(response, { server_keys: about().map((one) => signJson(one, state.name, key)) });
      });
      const server = {
        server_name: state.name,
        verify_keys: { [notaryKey.keyId]: notaryKey.publicKey.base64 },
        accept_keys_insecurely: false,
      };
      return { ...state, server };
    }

    it('fetches a key from its owner once for concurrent callers, and stores it across restarts', async () => {
      const a = await serveOwner();
      const first = await openFederation();
      const wanted = { serverName: a.name, keyId: aKey.keyId, validUntil: first.clock.now() };
      const foundKeys = await Promise.all([1, 2, 3].map(() => first.keys.find(wanted, 'request')));
      assert.deepEqual(
        foundKeys.map((key) => key?.key.base64),
        Array(3).fill(aKey.publicKey.base64),
      );
      const old = await first.keys.find({ ...wanted, keyId: oldKey.keyId }, 'events');
      assert.equal(old?.expiredTs, 5);
      const second = await openFederation({}, first.database);
      assert.equal((await second.keys.find(wanted, 'events'))?.validUntilTs, a.validUntil);
      assert.equal(a.requestCount, 1);
    });

    it('marks a key as needed for events once, and keeps the mark when the key is fetched again', async () => {
      const a = await serveOwner();
      const { keys, clock, database } = await openFederation();
      const wanted = { serverName: a.name, keyId: aKey.keyId, validUntil: clock.now() };
      const marks = async () => {
        const rows = await database.reader<KeyTables>().selectFrom('server_keys').selectAll().execute();
        return Object.fromEntries(rows.map((row) => [row.key_id, row.for_events]));
      };
      await keys.find(wanted, 'request');
      assert.deepEqual(await marks(), { [aKey.keyId]: 0, [oldKey.keyId]: 0 });
      await keys.findAll([wanted]);
      assert.deepEqual(await marks(), { [aKey.keyId]: 1, [oldKey.keyId]: 0 });
      const { batches } = database.statistics;
      await keys.findAll([wanted]);
      clock.advance(25 * hour);
      a.validUntil += 48 * hour;
      await keys.findAll([{ ...wanted, validUntil: clock.now() }]);
      assert.deepEqual([await marks(), a.requestCount], [{ [aKey.keyId]: 1, [oldKey.keyId]: 0 }, 2]);
      assert.equal(database.statistics.batches, batches);
    });

    it('fetches a key again when it expires before the wanted time', async () => {
      const a = await serveOwner();
      const { keys, clock } = await openFederation();
      const wanted = { serverName: a.name, keyId: aKey.keyId, validUntil: clock.now() };
      await keys.find(wanted, 'request');
      clock.advance(25 * hour);
      a.validUntil += 48 * hour;
      const again = await keys.find({ ...wanted, validUntil: clock.now() }, 'request');
      assert.equal(again?.validUntilTs, a.validUntil);
      a.status = 500;
      const beyond = { ...wanted, validUntil: a.validUntil + 1 };
      clock.advance(hour);
      assert.equal((await keys.find(beyond, 'events'))?.validUntilTs, a.validUntil);
      assert.equal(a.requestCount, 3);
    });

    it('limits the rate of requests for unknown key ids', async () => {
      const a = await serveOwner();
      const { keys, clock } = await openFederation();
      const findKey = (keyId: string) => keys.find({ serverName: a.name, keyId, validUntil: 0 }, 'request');
      for (let i = 0; i < 20; i++) assert.equal(await findKey(`ed25519:made_up_${i}`), undefined);
      assert.equal(a.requestCount, 1);
      clock.advance(5_000);
      a.key = newSigningKey('fresh');
      assert.equal((await findKey('ed25519:fresh'))?.key.base64, a.key.publicKey.base64);
      a.status = 500;
      for (let i = 0; i < 1_000; i++) {
        clock.advance(1_000);
        await findKey('ed25519:gone');
      }
      assert.ok(a.requestCount < 12, String(a.requestCount));
    });

    it('fetches keys from all notaries, and trusts only responses signed by their configured keys [option: trusted_key_servers[].server_name, trusted_key_servers[].verify_keys]', async () => {
      const clockStart = 1_700_000_000_000;
      const dead = 'gone.example';
      const about = () => [
        keyResponse(dead, clockStart + hour),
        keyResponse('unrequested.example', clockStart + hour),
      ];
      const good = await serveNotary(notaryKey, about);
      const bad = await serveNotary(strangersKey, () => [
        keyResponse(dead, clockStart + 2 * hour, strangersKey),
      ]);
      const empty = await serveNotary(notaryKey, () => []);
      const { keys } = await openFederation({ trusted_key_servers: [bad.server, empty.server, good.server] });
      const wantedKeys = [
        { serverName: dead, keyId: aKey.keyId, validUntil: clockStart },
        { serverName: dead, keyId: strangersKey.keyId, validUntil: 0 },
        { serverName: 'here.example', keyId: ownKey.keyId, validUntil: 0 },
      ];
      const lookup = await keys.findAll(wantedKeys);
      assert.equal(lookup(dead, aKey.keyId)?.key.base64, aKey.publicKey.base64);
      assert.equal(lookup(dead, strangersKey.keyId), undefined);
      assert.equal(lookup('here.example', ownKey.keyId)?.key.base64, ownKey.publicKey.base64);
      assert.equal(lookup('unrequested.example', aKey.keyId), undefined);
      const criteria = {
        [aKey.keyId]: { minimum_valid_until_ts: clockStart },
        [strangersKey.keyId]: { minimum_valid_until_ts: 0 },
      };
      for (const { requests } of [good, bad, empty]) {
        assert.deepEqual(requests, [{ server_keys: { [dead]: criteria } }]);
      }
      await keys.findAll(wantedKeys);
      assert.equal(
        good.requests.length,
        1,
        'keys that notaries did not have are not requested again at once',
      );
    });

    it('sends requests to all notaries at the same time and uses the first valid response', async () => {
      const dead = 'gone.example';
      const about = () => [keyResponse(dead, 1_700_000_000_000 + hour)];
      const wasRequested = Promise.withResolvers<void>();
      const over = Promise.withResolvers<void>();
      const silent = await serveNotary(strangersKey, about, async () => {
        wasRequested.resolve();
        await over.promise;
      });
      // This notary responds once the silent notary has received a request; the silent notary responds at the end of
      // the test.
      const good = await serveNotary(notaryKey, about, () => wasRequested.promise);
      for (const servers of [
        [silent.server, good.server],
        [good.server, silent.server],
      ]) {
        const { keys } = await openFederation({ trusted_key_servers: servers });
        const foundKey = await keys.find({ serverName: dead, keyId: aKey.keyId, validUntil: 0 }, 'events');
        assert.equal(foundKey?.key.base64, aKey.publicKey.base64);
      }
      over.resolve();
    });

    it('trusts a notary without configured keys by its TLS certificate', async () => {
      const dead = 'gone.example';
      const any = await serveNotary(strangersKey, () => [keyResponse(dead, 1_700_000_000_000 + hour)]);
      const { keys } = await openFederation({ trusted_key_servers: [{ ...any.server, verify_keys: null }] });
      const foundKey = await keys.find({ serverName: dead, keyId: aKey.keyId, validUntil: 0 }, 'events');
      assert.equal(foundKey?.key.base64, aKey.publicKey.base64);
    });

    it('keeps a key when a notary has an older response', async () => {
      const a = await serveOwner();
      const stale = await serveNotary(notaryKey, () => [keyResponse(a.name, a.validUntil - 2 * hour)]);
      const { keys, clock } = await openFederation({ trusted_key_servers: [stale.server] });
      const wanted = { serverName: a.name, keyId: aKey.keyId, validUntil: clock.now() };
      await keys.find(wanted, 'request');
      a.status = 500;
      const foundKey = await keys.find({ ...wanted, validUntil: a.validUntil + 1 }, 'events');
      assert.equal(foundKey?.validUntilTs, a.validUntil);
    });

    it('keeps a key when its owner sends an expired response, and stores that response if no better response is stored', async () => {
      const a = await serveOwner();
      const { keys, clock } = await openFederation();
      const wanted = { serverName: a.name, keyId: aKey.keyId, validUntil: clock.now() };
      await keys.find(wanted, 'request');
      const { validUntil } = a;
      a.validUntil = clock.now() - hour;
      clock.advance(hour);
      const beyond = { ...wanted, validUntil: validUntil + 1 };
      assert.equal((await keys.find(beyond, 'events'))?.validUntilTs, validUntil);
      assert.equal(a.requestCount, 2);
      a.validUntil = validUntil - hour;
      clock.advance(hour);
      assert.equal((await keys.find(beyond, 'events'))?.validUntilTs, a.validUntil);
      const late = await openFederation();
      a.validUntil = late.clock.now() - hour;
      await late.keys.refresh(a.name, [], late.clock.now(), () => true);
      const [text] = await late.keys.responsesOf(a.name, []);
      assert.equal((JSON.parse(text!) as JsonObject)['valid_until_ts'], a.validUntil);
    });

    it('stores a response with many keys once, and bounds the stored keys and responses of a server', async () => {
      const names = (round: number) =>
        Array.from({ length: 190 }, (_, index) => `ed25519:r${round}_${index}`);
      let round = 0;
      let padding = 12_000;
      const name = await serve('a.example', (_request, response) => {
        const old = names(round).map((keyId) => [keyId, { key: oldKey.publicKey.base64, expired_ts: 5 }]);
        const content = {
          server_name: name,
          verify_keys: { [aKey.keyId]: { key: aKey.publicKey.base64 } },
          old_verify_keys: Object.fromEntries(old),
          valid_until_ts: 1_700_000_000_000 + 24 * hour,
          padding: '.'.repeat(padding),
        };
        answer(response, signJson(content, name, aKey));
      });
      const { keys, clock, database } = await openFederation();
      const stored = async () => {
        const tables = database.reader<KeyTables>();
        const texts = await tables.selectFrom('server_key_responses').select('text').execute();
        const rows = await tables.selectFrom('server_keys').selectAll().execute();
        const rowBytes = JSON.stringify(rows).length;
        return { texts, rows, bytes: texts.reduce((sum, { text }) => sum + text.length, rowBytes) };
      };
      const fetch = async () => {
        clock.advance(10_000);
        await keys.find({ serverName: name, keyId: names(round)[0]!, validUntil: 0 }, 'request');
      };
      await fetch();
      const first = await stored();
      assert.deepEqual([first.texts.length, first.rows.length], [1, 191]);
      assert.ok(first.bytes < 100_000, String(first.bytes));
      for (round = 1; round < 8; round++) await fetch();
      const { texts, rows, bytes } = await stored();
      assert.deepEqual([texts.length, rows.length], [4, 1_000]);
      assert.ok(bytes < 500_000, String(bytes));
      const served = await keys.responsesOf(name, []);
      assert.equal(served.length, 4);
      // Keys whose response was deleted stay known.
      assert.equal(rows.filter(({ key_id: keyId }) => keyId.startsWith('ed25519:r0_')).length, 190);

      padding = 20_000;
      await fetch();
      assert.ok((await keys.responsesOf(name, [])).every((text) => text.length < 32_768));
    });

    it('requests a key for a request from its owner, and from notaries only when the owner does not send it', async () => {
      const a = await serveOwner();
      const other = await serveNotary(notaryKey, () => [keyResponse(a.name, a.validUntil)]);
      const options = { trusted_key_servers: [other.server] };
      const wanted = { serverName: a.name, keyId: aKey.keyId, validUntil: 0 };
      const first = await openFederation(options);
      assert.notEqual(await first.keys.find(wanted, 'request'), undefined);
      assert.deepEqual([a.requestCount, other.requests.length], [1, 0]);
      a.status = 500;
      const second = await openFederation(options);
      assert.notEqual(await second.keys.find(wanted, 'request'), undefined);
      assert.deepEqual([a.requestCount, other.requests.length], [2, 1]);
    });

    it('rejects the response of a server about another server', async () => {
      const name = await serve('a.example', (_request, response) =>
        answer(response, { ...keyResponse('b.example', 1_800_000_000_000) }),
      );
      const { keys } = await openFederation();
      const wanted = { serverName: name, keyId: aKey.keyId, validUntil: 0 };
      assert.equal(await keys.find(wanted, 'request'), undefined);
    });
  });
});
