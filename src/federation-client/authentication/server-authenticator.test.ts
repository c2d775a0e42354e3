import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { newSigningKey } from '../../../test/support/inputs/signing-key.ts';
import { serveOnLoopback } from '../../../test/support/network/loopback.ts';
import { commonTestAuthority, type TestAuthority } from '../../../test/support/network/test-authority.ts';
import { openTestFederation } from '../../../test/support/other-servers/federation.ts';
import { canonicalJson, type JsonValue, parseJson, type SigningKey, signJson } from '../../protocol/index.ts';
import { authorize } from '../requests/request-signature.ts';
import { formatXMatrix, parseXMatrix } from '../requests/x-matrix.ts';

const ownKey = newSigningKey('own');
const key = newSigningKey('a');
const retired = newSigningKey('old');
const successor = newSigningKey('b');

forSelectedDatabases(import.meta.url, (open) => {
  describe('XMatrixAuthenticator', () => {
    const opened: { close(): Promise<void> }[] = [];
    let authority: TestAuthority;
    before(() => {
      authority = commonTestAuthority();
    });
    after(() => authority.remove());
    afterEach(async () => {
      for (const one of opened.splice(0).reverse()) await one.close();
    });

    async function setUp(allowed?: (origin: string) => string[]) {
      let origin = '';
      let keyRequests = 0;
      let current = key;
      const server = await serveOnLoopback((_request, response) => {
        keyRequests++;
        const content = {
          server_name: origin,
          verify_keys: { [current.keyId]: { key: current.publicKey.base64 } },
          old_verify_keys: { [retired.keyId]: { key: retired.publicKey.base64, expired_ts: 5 } },
          valid_until_ts: 1_700_000_000_000 + 1_000_000,
        };
        const body = JSON.stringify(signJson(content, origin, current));
        response.writeHead(200, { 'content-type': 'application/json' }).end(body);
      }, authority.issue('a.example'));
      origin = `a.example:${server.port}`;
      const options = allowed ? { federation_domain_whitelist: allowed(origin) } : {};
      const here = await openTestFederation({ name: 'here.example', key: ownKey, authority, open, options });
      opened.push(server, here);
      const parts = { method: 'PUT', uri: '/_matrix/x?a=%7E', origin, destination: 'here.example' };
      const check = async (headers: readonly string[], body?: unknown, url = parts.uri) => {
        const head = { method: 'PUT', url, authorization: headers };
        const signature = await here.serverAuthenticator.readSignature(head);
        const content = body === undefined ? undefined : canonicalJson(body as JsonValue, 'as written');
        await signature.verify(content);
        if (content !== undefined) assert.equal(await signature.covers(Buffer.from(content)), true);
        return signature.origin;
      };
      return {
        ...here,
        origin,
        parts,
        check,
        keyRequests: () => keyRequests,
        /** Lets the origin publish another key. */
        rotateTo(next: SigningKey) {
          current = next;
        },
      };
    }

    const unauthorized = { status: 401, errcode: 'M_UNAUTHORIZED' };

    it('accepts a validly signed request, with or without a body', async () => {
      const { origin, parts, check, keyRequests } = await setUp();
      const body = parseJson('{"b": 1.0, "a": ["\u{1f600}"]}', { numbers: 'as written' });
      const content = canonicalJson(body, 'as written');
      assert.equal(await check([authorize(parts, key)]), origin);
      assert.equal(await check([authorize({ ...parts, content }, key)], body), origin);
      assert.equal(keyRequests(), 1);
    });

    it('rejects a signature over another body, URI or method, or by another key', async () => {
      const { parts, check } = await setUp();
      const content = canonicalJson({ a: 1 });
      const header = authorize({ ...parts, content }, key);
      assert.equal(await check([header], { a: 1 }), parts.origin);
      await assert.rejects(check([header], { a: 2 }), unauthorized);
      await assert.rejects(check([header]), unauthorized);
      await assert.rejects(check([header], { a: 1 }, '/_proto/x?a=%7E'), unauthorized);
      await assert.rejects(check([header], { a: 1 }, '/_matrix/x?a=~'), unauthorized);
      await assert.rejects(check([authorize({ ...parts, method: 'POST' }, key)]), unauthorized);
      await assert.rejects(check([authorize(parts, newSigningKey('a'))]), unauthorized);
    });

    it('rejects a request for another destination, even if the header does not name it', async () => {
      const { parts, check, origin } = await setUp();
      const elsewhere = { ...parts, destination: 'b.example' };
      await assert.rejects(check([authorize(elsewhere, key)]), unauthorized);
      const hidden = parseXMatrix(authorize(elsewhere, key))!;
      await assert.rejects(check([formatXMatrix({ ...hidden, destination: undefined })]), unauthorized);
      await assert.rejects(check([formatXMatrix({ ...hidden, destination: 'here.example' })]), unauthorized);
      const old = parseXMatrix(authorize(parts, key))!;
      assert.equal(await check([formatXMatrix({ ...old, destination: undefined })]), origin);
    });

    it('rejects invalid headers, unknown keys, too many signatures, signatures of two origins, and the name of this server as origin', async () => {
      const { parts, check } = await setUp();
      const signature = parseXMatrix(authorize(parts, key))!;
      const headerWith = (changes: object) => [formatXMatrix({ ...signature, ...changes })];
      for (const headers of [
        [],
        ['Bearer abc'],
        ['X-Matrix origin='],
        headerWith({ origin: 'here.example' }),
        headerWith({ key: 'rsa:a' }),
        headerWith({ key: 'ed25519:unknown' }),
        headerWith({ signature: 'AAAA' }),
        Array<string>(10).fill(authorize(parts, key)),
        [authorize(parts, key), authorize({ ...parts, origin: 'b.example' }, key)],
      ]) {
        await assert.rejects(check(headers), unauthorized, headers[0] ?? '');
      }
    });

    it('answers 400 M_UNAUTHORIZED to an origin that is not a server name', async () => {
      const { parts, check } = await setUp();
      const signature = parseXMatrix(authorize(parts, key))!;
      for (const origin of ['no server/name', 'a.example:http', 'a.example:', '-:1:2']) {
        await assert.rejects(
          check([formatXMatrix({ ...signature, origin })]),
          { status: 400, errcode: 'M_UNAUTHORIZED' },
          origin,
        );
      }
    });

    it('reports whether the signature of a request covers the bytes of a long body', async () => {
      const { parts, origin, serverAuthenticator } = await setUp();
      const content = canonicalJson({ list: Array.from({ length: 100_000 }, (_, index) => index) });
      const read = (header: string) =>
        serverAuthenticator.readSignature({ method: 'PUT', url: parts.uri, authorization: [header] });
      const signature = await read(authorize({ ...parts, content }, key));
      assert.equal(signature.origin, origin);
      assert.equal(await signature.covers(Buffer.from(content)), true);
      assert.equal(await signature.covers(Buffer.from(`${content} `)), false);
      const malformed = parseXMatrix(authorize({ ...parts, content }, key))!;
      const short = await read(formatXMatrix({ ...malformed, signature: 'AAAA' }));
      assert.equal(await short.covers(Buffer.from(content)), false);
    });

    it('accepts several signatures if those by known keys are valid', async () => {
      const { parts, check, origin } = await setUp();
      const good = authorize(parts, key);
      assert.equal(await check([good, authorize(parts, newSigningKey('unknown'))]), origin);
      await assert.rejects(check([good, authorize(parts, newSigningKey('a'))]), unauthorized);
    });

    it('rejects signatures by retired and expired keys', async () => {
      const { parts, check, clock, origin, rotateTo } = await setUp();
      await assert.rejects(check([authorize(parts, retired)]), unauthorized);
      assert.equal(await check([authorize(parts, key)]), origin);
      clock.advance(1_000_001);
      rotateTo(successor);
      await assert.rejects(check([authorize(parts, key)]), unauthorized);
    });

    it('sends one request for keys to a server that signs with 30 unknown key ids', async () => {
      const { parts, check, keyRequests } = await setUp();
      for (let i = 0; i < 30; i++) {
        await assert.rejects(check([authorize(parts, newSigningKey(`k${i}`))]), unauthorized);
      }
      assert.equal(keyRequests(), 1);
    });

    it('rejects requests from servers outside the whitelist, without fetching keys [option: federation_domain_whitelist]', async () => {
      const listed = await setUp((origin) => [origin]);
      assert.equal(await listed.check([authorize(listed.parts, key)]), listed.origin);
      const other = await setUp(() => ['b.example']);
      await assert.rejects(other.check([authorize(other.parts, key)]), {
        status: 403,
        errcode: 'M_FORBIDDEN',
      });
      assert.equal(other.keyRequests(), 0);
    });

    it('ends the backoff of a server that sends a valid request', async () => {
      const { parts, check, destinations, origin, clock } = await setUp();
      await destinations.recordFailure(origin, clock.now());
      const returned: string[] = [];
      destinations.onReturn((name) => returned.push(name));
      await check([authorize(parts, key)]);
      assert.deepEqual(returned, [origin]);
      assert.equal(await destinations.backoffUntil(origin), undefined);
    });

    it('verifies signatures over bodies that are not objects, or have fields named signatures, unsigned and __proto__', async () => {
      const { parts, check } = await setUp();
      const odd: JsonValue[] = [
        null,
        [],
        'text',
        { signatures: 1, unsigned: {} },
        JSON.parse('{"__proto__": {"x": 1}}'),
      ];
      for (const body of odd) {
        const header = authorize({ ...parts, content: canonicalJson(body) }, key);
        assert.equal(await check([header], body), parts.origin);
      }
    });
  });
});
