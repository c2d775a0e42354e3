import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { codePoint } from '../../../../test/support/inputs/code-point.ts';
import { runs } from '../../../../test/support/inputs/thoroughness.ts';
import { bearer, kernelServerForTests } from '../../../../test/support/servers/kernel-server.ts';

const { base, call, fails } = kernelServerForTests();

describe('routing', () => {
  it('serves both spellings of a path', async () => {
    for (const prefix of ['/_matrix', '/_proto']) {
      assert.deepEqual((await call('GET', `${prefix}/client/versions`)).body, { versions: ['v1.1'] });
    }
    assert.equal((await call('POST', '/_synapse/admin/v1/purge', bearer('admin-secret'))).status, 200);
  });

  it('serves a request line with an absolute URL', async () => {
    const socket = connect(Number(new URL(base()).port), '127.0.0.1');
    socket.end('GET http://example.org/_matrix/client/versions HTTP/1.1\r\nHost: example.org\r\n\r\n');
    assert.match(await text(socket), /^HTTP\/1.1 200 .*"v1.1"/s);
  });

  it('passes the URL to the handler as sent, with decoded path parameters', async () => {
    const url = '/_matrix/client/r0/who/%40b%2Fob%25:test?x=1';
    const { body } = await call('GET', url, bearer('alice-secret'));
    assert.deepEqual(body, { user: '@b/ob%:test', me: '@alice:test', url, ip: '127.0.0.1' });
  });

  it('decodes path parameters to exactly what the client encoded', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: codePoint, minLength: 1, maxLength: 40 }), async (name) => {
        fc.pre(name.isWellFormed() && name !== '.' && name !== '..');
        const path = `/_matrix/client/v3/who/${encodeURIComponent(name)}`;
        assert.equal((await call('GET', path, bearer('alice-secret'))).body['user'], name);
      }),
      { numRuns: runs(200) },
    );
    for (const name of ['%25', '%2F', 'a;b', 'a?b#c', '+ +', '//', '%']) {
      const path = `/_matrix/client/v3/who/${encodeURIComponent(name)}`;
      assert.equal((await call('GET', path, bearer('alice-secret'))).body['user'], name);
    }
  });

  it('routes a percent-encoded path like the plain path, and parses the queries of both in the same way', async () => {
    const unit = fc.oneof(codePoint.map(encodeURIComponent), fc.constantFrom(...'azAZ09-._~!$&*+,;=:@/?'));
    const query = fc.oneof(
      fc.string({ unit: fc.constantFrom(...'&=+%#?;f4dirlmt[]é') }),
      // Like `fc.webQueryParameters`, which makes a map of all characters.
      fc.array(unit, { maxLength: 20 }).map((units) => units.join('')),
      fc.constantFrom('dir=f', 'dir=b&limit=%31', 'dir=f&server=a&server=%C3%BC+1', 'dir=f&dir=b'),
    );
    await fc.assert(
      fc.asyncProperty(query, async (text) => {
        const [plain, encoded] = await Promise.all(
          ['list', 'l%69st'].map((name) => call('GET', `/_matrix/client/v3/${name}?${encodeURI(text)}`)),
        );
        assert.deepEqual([plain?.status, plain?.body], [encoded?.status, encoded?.body]);
      }),
      { numRuns: runs(300) },
    );
    assert.equal((await call('GET', '/_matrix/client/v3/l%69st?dir=f')).status, 200);
  });

  it('answers 404 for an unknown path and 405 for a wrong method, both M_UNRECOGNIZED', async () => {
    await fails(404, 'M_UNRECOGNIZED', 'GET', '/_matrix/client/v3/nothing');
    await fails(404, 'M_UNRECOGNIZED', 'GET', '/else');
    await fails(405, 'M_UNRECOGNIZED', 'DELETE', '/_matrix/client/versions');
    await fails(405, 'M_UNRECOGNIZED', 'PATCH', '/_matrix/client/v3/who/x');
  });

  it('answers 400 M_INVALID_PARAM for broken percent-encoding in a path', async () => {
    await fails(400, 'M_INVALID_PARAM', 'GET', '/_matrix/client/v3/who/%ff', bearer('alice-secret'));
    await fails(400, 'M_INVALID_PARAM', 'GET', '/_matrix/client/v3/who/%', bearer('alice-secret'));
  });

  it('answers a CORS preflight with 204 and the allowed methods and headers', async () => {
    const answer = await call('OPTIONS', '/_matrix/client/v3/members');
    assert.equal(answer.status, 204);
    assert.equal(answer.headers.get('access-control-allow-origin'), '*');
    assert.match(answer.headers.get('access-control-allow-methods')!, /PUT/);
    assert.match(answer.headers.get('access-control-allow-headers')!, /Authorization/);
  });

  it('answers HEAD like GET, without the body', async () => {
    const answer = await call('HEAD', '/_matrix/client/versions');
    assert.deepEqual([answer.status, answer.raw], [200, '']);
    assert.equal(answer.headers.get('content-length'), String('{"versions":["v1.1"]}'.length));
  });
});

describe('authentication of requests', () => {
  it('accepts the access token in the Authorization header or the query', async () => {
    const { body } = await call('GET', '/_matrix/client/v3/who/x?access_token=alice-secret');
    assert.equal(body['me'], '@alice:test');
    await fails(401, 'M_MISSING_TOKEN', 'GET', '/_matrix/client/v3/who/x');
    await fails(401, 'M_MISSING_TOKEN', 'GET', '/_matrix/client/v3/who/x', {
      headers: { authorization: 'Basic YTpi' },
    });
    const { body: error } = await fails(
      401,
      'M_UNKNOWN_TOKEN',
      'GET',
      '/_matrix/client/v3/maybe',
      bearer('x'),
    );
    assert.equal(error['soft_logout'], false);
  });

  it('answers 403 to guests, users and clients without the rights of a route, and lets application services act as users', async () => {
    await fails(403, 'M_GUEST_ACCESS_FORBIDDEN', 'GET', '/_matrix/client/v3/members', bearer('guest-secret'));
    assert.equal((await call('GET', '/_matrix/client/v3/who/x', bearer('guest-secret'))).status, 200);
    await fails(403, 'M_FORBIDDEN', 'POST', '/_server/admin/v1/purge', bearer('alice-secret'));
    await fails(403, 'M_FORBIDDEN', 'GET', '/_matrix/client/v3/bridges', bearer('alice-secret'));
    const asserted = await call(
      'GET',
      '/_matrix/client/v3/bridges?user_id=@irc:test',
      bearer('bridge-secret'),
    );
    assert.equal(asserted.body['me'], '@irc:test');
    assert.deepEqual((await call('GET', '/_matrix/client/v3/maybe')).body, { me: null });
  });

  it('answers 401 M_UNAUTHORIZED to other servers when signatures cannot be checked', async () => {
    await fails(401, 'M_UNAUTHORIZED', 'PUT', '/_matrix/federation/v1/send/1', { body: '{}' });
  });
});
