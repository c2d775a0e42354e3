import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, beforeEach, describe, it } from 'node:test';
import fc from 'fast-check';
import { type ManualClock, manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { sectionDefaults } from '../../../test/support/inputs/section-defaults.ts';
import {
  FakeResolver,
  type LoopbackServer,
  serveOnLoopback,
} from '../../../test/support/network/loopback.ts';
import { makeTestAuthority, type TestAuthority } from '../../../test/support/network/test-authority.ts';
import { plainCaches } from '../../../test/support/servers/caches.ts';
import { systemClock } from '../../kernel/clock.ts';
import { OutboundHttp, outboundSection, type SrvRecord } from '../../kernel/outbound/index.ts';
import { systemRandomness } from '../../kernel/randomness.ts';
import { federationClientSection } from '../config.ts';
import { federationTls } from '../tls.ts';
import { cachePeriod } from './cache-period.ts';
import { Discovery } from './discovery.ts';
import { orderBySrv } from './srv-order.ts';
import { WellKnown } from './well-known.ts';

const minute = 60_000;
const hour = 60 * minute;

/** A response of the web server of `example.org`. The server is behind a proxy, because the test cannot listen on port 443. */
interface WebAnswer {
  status?: number;
  headers?: Record<string, string>;
  body?: string;
}

describe('Discovery', () => {
  let authority: TestAuthority;
  let web: LoopbackServer;
  let proxy: LoopbackServer;
  let answer: (path: string) => WebAnswer;
  let requestedUrls: string[];
  let http: OutboundHttp;
  let resolver: FakeResolver;
  let clock: ManualClock;
  let discovery: Discovery;

  before(async () => {
    authority = makeTestAuthority();
    web = await serveOnLoopback(
      (request, response) => {
        requestedUrls.push(`${request.headers.host}${request.url}`);
        const { status = 200, headers = {}, body = '' } = answer(request.url!);
        response.writeHead(status, headers).end(body);
      },
      authority.issue('example.org', 'other.example'),
    );
    proxy = await serveOnLoopback((_request, response) => response.end());
    proxy.server.on('connect', (request, socket) => {
      if (!request.url!.endsWith(':443')) return void socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
      const target = connect(web.port, '127.0.0.1', () => {
        socket.write('HTTP/1.1 200 OK\r\n\r\n');
        target.pipe(socket).pipe(target);
      });
      for (const end of [socket, target]) end.on('error', () => undefined);
    });
  });
  after(async () => {
    await http.close();
    await web.close();
    await proxy.close();
    authority.remove();
  });
  beforeEach(async () => {
    await http?.close();
    requestedUrls = [];
    answer = () => ({ status: 404 });
    resolver = new FakeResolver();
    clock = manualClock();
    const config = sectionDefaults(outboundSection, { https_proxy: `http://127.0.0.1:${proxy.port}` });
    http = new OutboundHttp({ caches: plainCaches(systemClock), config, clock: systemClock, resolver });
    const options = sectionDefaults(federationClientSection, { federation_custom_ca_list: [authority.path] });
    const caches = plainCaches(clock);
    const wellKnown = new WellKnown({ caches, http, tls: await federationTls(options), clock });
    discovery = new Discovery({ caches, wellKnown, resolver, clock, randomness: systemRandomness });
  });

  const delegateTo = (name: string, headers: Record<string, string> = {}) => {
    answer = () => ({ headers, body: JSON.stringify({ 'm.server': name }) });
  };
  const endpoint = async (name: string) => {
    const endpoints = await discovery.endpointsOf(name);
    assert.equal(endpoints.length, 1);
    const { host, port, tlsName, authority: header } = endpoints[0]!;
    return [host, port, tlsName, header];
  };
  const target = (name: string, port: number, priority = 0, weight = 0): SrvRecord => ({
    name,
    port,
    priority,
    weight,
  });

  it('uses an IP address itself, with port 8448 by default (step 1)', async () => {
    assert.deepEqual(await endpoint('1.2.3.4'), ['1.2.3.4', 8448, undefined, '1.2.3.4']);
    assert.deepEqual(await endpoint('1.2.3.4:99'), ['1.2.3.4', 99, undefined, '1.2.3.4:99']);
    assert.deepEqual(await endpoint('[2001::1]:99'), ['2001::1', 99, undefined, '[2001::1]:99']);
    assert.deepEqual(requestedUrls, []);
  });

  it('uses a host name with an explicit port itself (step 2)', async () => {
    assert.deepEqual(await endpoint('example.org:443'), [
      'example.org',
      443,
      'example.org',
      'example.org:443',
    ]);
    assert.deepEqual([...requestedUrls, ...resolver.lookedUpNames], []);
  });

  it('follows a delegation to an IP address or an explicit port (steps 3.1 and 3.2)', async () => {
    delegateTo('1.2.3.4');
    assert.deepEqual(await endpoint('example.org'), ['1.2.3.4', 8448, undefined, '1.2.3.4']);
    assert.deepEqual(requestedUrls, ['example.org/.well-known/matrix/server']);
    delegateTo('far.example:443');
    assert.deepEqual(await endpoint('other.example'), ['far.example', 443, 'far.example', 'far.example:443']);
    assert.deepEqual(resolver.lookedUpNames, []);
  });

  it('looks up SRV records of the delegated name (steps 3.3 to 3.5)', async () => {
    delegateTo('far.example');
    resolver.srv.set('_matrix-fed._tcp.far.example', [target('one.example', 1)]);
    resolver.srv.set('_matrix._tcp.far.example', [target('two.example', 2)]);
    assert.deepEqual(await endpoint('example.org'), ['one.example', 1, 'far.example', 'far.example']);
    resolver.srv.delete('_matrix-fed._tcp.far.example');
    clock.advance(6 * minute);
    assert.deepEqual(await endpoint('example.org'), ['two.example', 2, 'far.example', 'far.example']);
    resolver.srv.clear();
    clock.advance(6 * minute);
    assert.deepEqual(await endpoint('example.org'), ['far.example', 8448, 'far.example', 'far.example']);
  });

  it('looks up SRV records of the host itself when there is no delegation (steps 4 to 6)', async () => {
    resolver.srv.set('_matrix-fed._tcp.example.org', [
      target('b.example', 2, 20),
      target('a.example', 1, 10),
    ]);
    assert.deepEqual(await discovery.endpointsOf('example.org'), [
      { host: 'a.example', port: 1, tlsName: 'example.org', authority: 'example.org' },
      { host: 'b.example', port: 2, tlsName: 'example.org', authority: 'example.org' },
    ]);
    resolver.srv.set('_matrix._tcp.other.example', [target('c.example', 3)]);
    assert.deepEqual(await endpoint('other.example'), ['c.example', 3, 'other.example', 'other.example']);
    assert.deepEqual(await endpoint('third.example'), [
      'third.example',
      8448,
      'third.example',
      'third.example',
    ]);
  });

  it('uses port 8448 while SRV look-ups fail, and rejects a host whose SRV record says that it offers no service', async () => {
    resolver.failing.add('_matrix-fed._tcp.example.org').add('_matrix._tcp.example.org');
    assert.equal((await endpoint('example.org'))[1], 8448);
    resolver.failing.clear();
    resolver.srv.set('_matrix-fed._tcp.example.org', [target('a.example', 1)]);
    assert.equal((await endpoint('example.org'))[1], 1);
    resolver.srv.set('_matrix-fed._tcp.other.example', [target('', 0)]);
    await assert.rejects(discovery.endpointsOf('other.example'), { failure: 'unknown-host' });
    await assert.rejects(discovery.endpointsOf('no server/name'), TypeError);
  });

  it('ignores invalid well-known documents', async () => {
    const answers: WebAnswer[] = [
      { status: 500 },
      { body: 'no json' },
      { body: '{}' },
      { body: '{"m.server": 5}' },
      { body: '{"m.server": "not/a name"}' },
      { body: `{"m.server": "far.example", "x": "${'x'.repeat(51_200)}"}` },
      { status: 302, headers: { location: '/.well-known/matrix/server' } },
      { status: 302, headers: { location: 'http://example.org/' } },
      { status: 404, body: '{"m.server": "far.example"}' },
    ];
    for (const response of answers) {
      answer = () => response;
      assert.equal((await endpoint('example.org'))[0], 'example.org', JSON.stringify(response).slice(0, 60));
      clock.advance(48 * hour);
    }
  });

  it('follows redirects, and requests /.well-known/proto/server after a 404 of /.well-known/matrix/server', async () => {
    answer = (path) =>
      path === '/moved'
        ? { body: '{"m.server": "far.example:1"}' }
        : { status: 301, headers: { location: 'https://other.example/moved' } };
    assert.equal((await endpoint('example.org'))[0], 'far.example');
    answer = (path) => (path.includes('proto') ? { body: '{"m.server": "far.example:2"}' } : { status: 404 });
    assert.equal((await endpoint('other.example'))[1], 2);
    assert.deepEqual(requestedUrls.slice(-2), [
      'other.example/.well-known/matrix/server',
      'other.example/.well-known/proto/server',
    ]);
  });

  it('caches delegations, shares one look-up among concurrent callers, and keeps delegations during transient failures', async () => {
    delegateTo('far.example:1');
    await Promise.all([1, 2, 3].map(() => endpoint('example.org')));
    clock.advance(24 * hour - 1);
    await endpoint('example.org');
    assert.equal(requestedUrls.length, 1);
    clock.advance(1);
    delegateTo('far.example:2', { 'cache-control': 'max-age=600' });
    assert.equal((await endpoint('example.org'))[1], 2);
    clock.advance(11 * minute);
    answer = () => ({ status: 503 });
    assert.equal((await endpoint('example.org'))[1], 2, 'a transient failure keeps the delegation');
    const before = requestedUrls.length;
    clock.advance(minute);
    await endpoint('example.org');
    assert.equal(requestedUrls.length, before);
    clock.advance(48 * hour);
    assert.equal((await endpoint('example.org'))[1], 8448, 'for 48 hours at most');
  });

  it('caches a missing delegation for an hour', async () => {
    await endpoint('example.org');
    const before = requestedUrls.length;
    clock.advance(hour - 1);
    await endpoint('example.org');
    assert.equal(requestedUrls.length, before);
    clock.advance(1);
    await endpoint('example.org');
    assert.ok(requestedUrls.length > before);
  });
});

describe('cachePeriod', () => {
  const now = Date.parse('2026-01-01T00:00:00Z');
  const cases: [Record<string, string>, number][] = [
    [{}, 24 * hour],
    [{ 'cache-control': 'public, Max-Age=7200' }, 2 * hour],
    [{ 'cache-control': 'max-age="7200"' }, 2 * hour],
    [{ 'cache-control': 'max-age=9999999999' }, 48 * hour],
    [{ 'cache-control': 'max-age=0' }, 5 * minute],
    [{ 'cache-control': 'no-store, max-age=7200' }, 5 * minute],
    [{ 'cache-control': 'max-age=many' }, 24 * hour],
    [{ expires: 'Thu, 01 Jan 2026 03:00:00 GMT' }, 3 * hour],
    [{ expires: '0' }, 5 * minute],
    [{ expires: 'soon' }, 5 * minute],
    [{ 'cache-control': 'max-age=7200', expires: 'soon' }, 2 * hour],
  ];
  for (const [headers, period] of cases) {
    it(`returns ${period / minute} minutes for ${JSON.stringify(headers)}`, () =>
      assert.equal(cachePeriod(headers, now), period));
  }
});

describe('orderBySrv', () => {
  const record = fc.record({
    name: fc.domain(),
    port: fc.nat(65535),
    priority: fc.nat(3),
    weight: fc.nat(100),
  });

  it('returns all records, sorted by priority', () => {
    fc.assert(
      fc.property(fc.array(record), (records) => {
        const ordered = orderBySrv(records, systemRandomness);
        assert.deepEqual(new Set(ordered), new Set(records));
        assert.equal(ordered.length, records.length);
        for (const [i, { priority }] of ordered.slice(1).entries())
          assert.ok(ordered[i]!.priority <= priority);
      }),
    );
  });

  it('puts each record first with a chance proportional to its weight', () => {
    const records = [10, 30, 60].map((weight) => ({ name: `${weight}`, port: 1, priority: 0, weight }));
    const first = new Map<number, number>();
    for (let i = 0; i < 3_000; i++) {
      const { weight } = orderBySrv(records, systemRandomness)[0]!;
      first.set(weight, (first.get(weight) ?? 0) + 1);
    }
    for (const weight of [10, 30, 60]) {
      const share = (first.get(weight) ?? 0) / 3_000;
      assert.ok(Math.abs(share - weight / 100) < 0.06, `${weight}: ${share}`);
    }
  });
});
