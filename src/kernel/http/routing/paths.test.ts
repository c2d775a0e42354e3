import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { serviceOf } from '../listeners/resources.ts';
import { bothSpellings, toDeclaredSpelling, toMatrixSpelling } from './namespaces.ts';
import { RouteTable } from './route-table.ts';

describe('spellings of paths', () => {
  const pairs = [
    ['/_proto/client/versions?a=/_matrix/', '/_matrix/client/versions?a=/_matrix/'],
    ['/_server/admin/v1/users', '/_synapse/admin/v1/users'],
    ['/.well-known/proto/client', '/.well-known/matrix/client'],
  ] as const;

  it('converts each spelling to the other and back', () => {
    for (const [declared, matrix] of pairs) {
      assert.equal(toDeclaredSpelling(matrix), declared);
      assert.equal(toDeclaredSpelling(declared), declared);
      assert.equal(toMatrixSpelling(declared), matrix);
      assert.equal(toMatrixSpelling(matrix), matrix);
    }
  });

  it('leaves paths outside of the namespaces unchanged', () => {
    for (const url of ['/', '/_matrix', '/_matrixx/client', '/x/_matrix/client', '/.well-known/other', '*']) {
      assert.equal(toDeclaredSpelling(url), url);
      assert.equal(toMatrixSpelling(url), url);
    }
  });

  it('lists every spelling of a path', () => {
    assert.deepEqual(bothSpellings('/_proto/key'), ['/_proto/key', '/_matrix/key']);
    assert.deepEqual(bothSpellings('/health'), ['/health']);
  });
});

describe('serviceOf', () => {
  const service = (names: Parameters<typeof serviceOf>[0][0]['names'], path: string, compress = false) =>
    serviceOf([{ names, compress }], path);

  it('serves the paths of a resource and of the resources that it includes', () => {
    for (const path of [
      '/_proto/client/v3/sync',
      '/_proto/media/v3/upload',
      '/_server/admin/v1/users',
      '/',
    ]) {
      assert.equal(service(['client'], path), 'plain', path);
    }
    for (const path of [
      '/_proto/federation/v1/send/:txn',
      '/_proto/key/v2/server',
      '/_proto/media/v3/upload',
    ]) {
      assert.equal(service(['federation'], path), 'plain', path);
    }
    assert.equal(service(['openid'], '/_proto/federation/v1/openid/userinfo'), 'plain');
    assert.equal(service(['media'], '/_proto/client/v1/media/download/:server/:id'), 'plain');
  });

  it('serves no paths of other resources, except the health check', () => {
    assert.equal(service(['client'], '/_proto/federation/v1/version'), 'none');
    assert.equal(service(['federation'], '/_proto/client/v3/sync'), 'none');
    assert.equal(service(['openid'], '/_proto/federation/v1/version'), 'none');
    assert.equal(service(['client', 'federation'], '/_server/metrics'), 'none');
    assert.equal(service(['client'], '/_server/replication/x'), 'none');
    assert.equal(service(['media'], '/_proto/mediaeval'), 'none');
    assert.equal(service(['metrics'], '/health'), 'plain');
  });

  it('compresses only resources to which compress applies', () => {
    assert.equal(service(['client'], '/_proto/client/v3/sync', true), 'gzip');
    assert.equal(service(['media'], '/_proto/media/v3/download', true), 'plain');
    assert.equal(service(['client'], '/_proto/media/v3/download', true), 'plain');
  });
});

describe('RouteTable', () => {
  const table = new RouteTable<{ readonly path: string }>();
  for (const path of ['/_proto/client/v3/rooms/:roomId/join', '/_proto/x/*', '/.well-known/proto/client']) {
    table.add('GET', path, { path });
  }
  table.add('PUT', '/_proto/y', { path: '/_proto/y' });

  it('finds a path with parameters, and parses its query', () => {
    const match = table.find('GET', '/_proto/client/v3/rooms/!a%2Fb:c/join?x=1&y=2&y=3');
    assert.equal(match?.value?.path, '/_proto/client/v3/rooms/:roomId/join');
    assert.deepEqual({ ...match.params }, { roomId: '!a/b:c' });
    assert.deepEqual({ ...match.searchParams }, { x: '1', y: ['2', '3'] });
  });

  it('finds static paths and wildcards with and without percent-encoding', () => {
    for (const url of [
      '/_proto/x/a/b',
      '/_prot%6f/x/a',
      '/.well-known/proto/client?a',
      '/.well-known/proto/clien%74',
    ]) {
      assert.notEqual(table.find('GET', url)?.value ?? null, null, url);
    }
  });

  it('finds the path of an absolute URL', () => {
    const { value, searchParams } = table.find('GET', 'http://example.org/_proto/x/a?b=1')!;
    assert.equal(value?.path, '/_proto/x/*');
    assert.equal(searchParams['b'], '1');
    assert.equal(table.find('GET', 'http://example.org'), table.find('GET', '/'));
  });

  it('prefers fixed segments to parameters, and parameters to wildcards, among the paths of the method', () => {
    const rooms = new RouteTable<{ readonly path: string }>();
    for (const path of ['/rooms/*', '/rooms/:id', '/rooms/:id/state', '/rooms/all/:page']) {
      rooms.add('GET', path, { path });
    }
    rooms.add('PUT', '/rooms/all', { path: 'PUT' });
    const found = (method: string, url: string) => {
      const { value, params } = rooms.find(method, url) ?? {};
      return [value?.path, { ...params }];
    };
    assert.deepEqual(found('GET', '/rooms/all'), ['/rooms/:id', { id: 'all' }]);
    assert.deepEqual(found('PUT', '/rooms/all'), ['PUT', {}]);
    assert.deepEqual(found('GET', '/rooms/all/2'), ['/rooms/all/:page', { page: '2' }]);
    assert.deepEqual(found('GET', '/rooms/all/state'), ['/rooms/all/:page', { page: 'state' }]);
    assert.deepEqual(found('GET', '/rooms//state'), ['/rooms/:id/state', { id: '' }]);
    assert.deepEqual(found('GET', '/rooms/a/b%2Fc/'), ['/rooms/*', { '*': 'a/b/c/' }]);
    assert.deepEqual(found('HEAD', '/rooms/all'), ['/rooms/:id', { id: 'all' }]);
    assert.deepEqual(found('PUT', '/rooms/all/2'), [undefined, {}]);
  });

  it('rejects a second value for the same method and path', () => {
    const twice = () => table.add('PUT', '/_proto/y', { path: 'again' });
    assert.throws(twice, /PUT \/_proto\/y is registered twice/);
  });

  it('finds no parameter that is longer than 16,384 characters', () => {
    const join = (id: string) => table.find('GET', `/_proto/client/v3/rooms/${id}/join`);
    assert.equal(join('x'.repeat(16_384))?.params['roomId']?.length, 16_384);
    assert.equal(join('x'.repeat(16_385)), null);
  });

  it('finds nothing for an unknown path or method', () => {
    for (const url of ['/_proto/client/v3/rooms/a/b/join', '/_proto/y', '/xwell-known/proto/client', '/']) {
      assert.equal(table.find('GET', url), null, url);
    }
    assert.equal(table.find('BREW', '/_proto/x/a'), null);
  });

  it('knows whether any method is registered for a URL', () => {
    assert.equal(table.has('/_proto/y?a=1'), true);
    assert.equal(table.has('/_proto/%79'), true);
    assert.equal(table.has('/_proto/z'), false);
  });

  it('reports a path with broken percent-encoding as a match without a value', () => {
    assert.equal(table.find('GET', '/_proto/x/%')?.value, null);
    assert.equal(table.find('GET', '/_proto/x/%ff')?.value, null);
  });
});
