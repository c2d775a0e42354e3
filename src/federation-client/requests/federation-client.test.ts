import assert from 'node:assert/strict';
import { text } from 'node:stream/consumers';
import { after, afterEach, before, describe, it } from 'node:test';
import type { TlsOptions } from 'node:tls';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import type { Overrides } from '../../../test/support/inputs/section-defaults.ts';
import type { FakeResolver } from '../../../test/support/network/loopback.ts';
import type { Database } from '../../kernel/database/index.ts';
import { type OutboundError, ResponseBudget } from '../../kernel/outbound/index.ts';
import { MatrixError } from '../../protocol/index.ts';
import type { FederationClientConfig } from '../config.ts';
import { errorForClient, federationPath } from '../index.ts';
import { RemoteError, ServerUnavailable } from './errors.ts';
import { signedText } from './request-signature.ts';
import { get, json, key, type Listener, RequestsUnderTest } from './test/requests-under-test.ts';
import { parseXMatrix } from './x-matrix.ts';

const minute = 60_000;

forSelectedDatabases(import.meta.url, (open) => {
  describe('FederationClient', () => {
    let test: RequestsUnderTest;
    let resolver: FakeResolver;
    before(() => {
      test = new RequestsUnderTest();
    });
    after(() => test.authority.remove());
    afterEach(() => test.close());
    const serve = (listener: Listener, tls: TlsOptions = {}) => test.serve(listener, tls);

    async function client(options: Overrides<FederationClientConfig> = {}, database?: Database) {
      const opened = await test.client(open, options, database);
      resolver = opened.resolver;
      return opened;
    }

    it('signs method, URI as sent, destination and body', async () => {
      const received: { header: string; uri: string; method: string; content: string }[] = [];
      const server = await serve(async (request, response) => {
        const { headers, url, method } = request;
        received.push({
          header: headers.authorization!,
          uri: url!,
          method: method!,
          content: await text(request),
        });
        json(response, 200, { host: headers.host, type: headers['content-type'] ?? null, odd: 1 });
      });
      const { requests } = await client();
      const answer = await requests.request({
        destination: server.name,
        method: 'PUT',
        path: federationPath`/_proto/federation/v1/x/${'$a/b?'}`,
        query: { v: ['1', '2'], no: undefined, n: 5 },
        body: { b: 1, a: { '\u{1f600}': 'x', '\uffff': 'y' } },
      });
      assert.deepEqual(answer, { host: server.name, type: 'application/json', odd: 1 });
      const [{ header, uri, method, content }] = received as [(typeof received)[0]];
      assert.equal(uri, '/_matrix/federation/v1/x/%24a%2Fb%3F?v=1&v=2&n=5');
      assert.equal(content, '{"a":{"\uffff":"y","\u{1f600}":"x"},"b":1}');
      const parsed = parseXMatrix(header)!;
      const parts = { method, uri, origin: 'here.example', destination: server.name, content };
      assert.equal(parsed.destination, server.name);
      assert.equal(key.publicKey.verifies(signedText(parts), parsed.signature), true);
      assert.deepEqual((await requests.request(get(server.name)))['type'], null);
    });

    it('parses only JSON objects up to maxBody, keeping the written form of numbers, and follows no redirect', async () => {
      const answers: Record<string, Listener> = {
        '/_matrix/float': (_request, response) =>
          response.writeHead(200, { 'content-type': 'Application/JSON; charset=utf-8' }).end('{"n":1.0}'),
        '/_matrix/text': (_request, response) => response.writeHead(200).end('{}'),
        '/_matrix/list': (_request, response) => json(response, 200, []),
        '/_matrix/long': (_request, response) => json(response, 200, { x: 'x'.repeat(5_000) }),
        '/_matrix/moved': (_request, response) =>
          response.writeHead(302, { location: '/_matrix/float' }).end(),
      };
      const server = await serve((request, response) => answers[request.url!]!(request, response));
      const { requests } = await client();
      const requestPath = (path: string) =>
        requests.request({ ...get(server.name), path: `/_proto/${path}`, maxBody: 1_000, retry: 'none' });
      assert.equal(JSON.stringify(await requestPath('float')), '{"n":1.0}');
      for (const path of ['text', 'list', 'long'])
        await assert.rejects(requestPath(path), { name: 'MalformedResponse' }, path);
      await assert.rejects(requestPath('moved'), { name: 'RemoteError', status: 302 });
    });

    it('rejects a response with too many values or a too long string before all of it has arrived, and drops the body of an error if it is too large', async () => {
      const junk = Buffer.from(`{"state":[?,${'{},'.repeat(2_100_000)}{}]}`);
      const deep = Buffer.from(
        `{"a":[${Array(200).fill('{}'.padEnd(1_000)).join(',')}${'['.repeat(1_000_000)}`,
      );
      const large = { state: Array.from({ length: 10_000 }, (_, n) => ({ n, a: [{}, 'x'.repeat(20)] })) };
      const answers: Record<string, [number, Buffer]> = {
        '/_matrix/junk': [200, junk],
        '/_matrix/text': [200, Buffer.from(`{"a":"${'x'.repeat(5_000_000)}`)],
        '/_matrix/deep': [200, deep],
        '/_matrix/large': [200, Buffer.from(JSON.stringify(large))],
        '/_matrix/error': [400, Buffer.from(`{"errcode":"M_NOT_FOUND","a":[${'{},'.repeat(100_000)}1]}`)],
      };
      const server = await serve((request, response) => {
        const [status, body] = answers[request.url!]!;
        response.writeHead(status, { 'content-type': 'application/json' });
        // These two responses never end.
        if (/junk|text/.test(request.url!)) response.write(body);
        else response.end(body);
      });
      const { requests } = await client();
      const requestPath = (path: string) =>
        requests.request({
          ...get(server.name),
          path: `/_proto/${path}`,
          maxBody: 16_000_000,
          retry: 'none',
        });
      for (const path of ['junk', 'text']) {
        await assert.rejects(requestPath(path), (error: Error) => {
          assert.equal(error.name, 'MalformedResponse');
          assert.equal((error.cause as OutboundError).failure, 'too-large');
          return true;
        });
      }
      await assert.rejects(requestPath('deep'), { name: 'MalformedResponse' });
      await assert.rejects(requestPath('error'), { name: 'RemoteError', status: 400, errcode: 'M_UNKNOWN' });
      assert.deepEqual(await requestPath('large'), large);
    });

    it('counts the responses to several requests against one budget, and sends no request when the budget is spent', async () => {
      let requestCount = 0;
      const answers: Record<string, Buffer> = {
        '/_matrix/small': Buffer.from(JSON.stringify({ a: Array(100).fill(1) })),
        // A parser would reject the `?`, so M_LIMIT_EXCEEDED shows that the budget is checked before the response is parsed.
        '/_matrix/many': Buffer.from(`{"a":[?${',1'.repeat(1_000)}]}`),
        '/_matrix/long': Buffer.from(JSON.stringify({ a: 'x'.repeat(9_000) })),
      };
      const server = await serve((request, response) => {
        requestCount++;
        response.writeHead(200, { 'content-type': 'application/json' }).end(answers[request.url!]);
      });
      const { requests } = await client();
      const send = (path: string, budget: ResponseBudget) =>
        requests.request({ ...get(server.name), path: `/_proto/${path}`, retry: 'none', budget });
      const values = new ResponseBudget({ bytes: 100_000, values: 350 });
      await send('small', values);
      await assert.rejects(send('many', values), { errcode: 'M_LIMIT_EXCEEDED' });
      await send('small', values);
      await send('small', values);
      await assert.rejects(send('small', values), { errcode: 'M_LIMIT_EXCEEDED' });
      const bytes = new ResponseBudget({ bytes: 9_200, values: 100_000 });
      await send('long', bytes);
      await assert.rejects(
        send('long', bytes),
        { name: 'MalformedResponse' },
        'longer than the remaining bytes',
      );
      const spent = new ResponseBudget({ bytes: 0, values: 1 });
      const sent = requestCount;
      await assert.rejects(send('small', spent), { errcode: 'M_LIMIT_EXCEEDED' });
      assert.equal(requestCount, sent);
    });

    it('rejects a short response with more values than the request allows before parsing it', async () => {
      const server = await serve((_request, response) =>
        response.writeHead(200, { 'content-type': 'application/json' }).end(`{"a":[?${',1'.repeat(200)}]}`),
      );
      const { requests } = await client();
      const rejection = requests.request({ ...get(server.name), retry: 'none', maxValues: 100 });
      await assert.rejects(rejection, (error: Error) => {
        assert.equal((error.cause as OutboundError).failure, 'too-large');
        return true;
      });
    });

    it('rejects with the status and the error of the other server, which errorForClient passes on to the client', async () => {
      const server = await serve((request, response) => {
        if (request.url === '/_matrix/plain') response.writeHead(403).end('no');
        else
          json(response, 400, { errcode: 'M_INCOMPATIBLE_ROOM_VERSION', error: 'old', room_version: '12' });
      });
      const { requests } = await client();
      const error = await requests.request(get(server.name)).catch((thrown: unknown) => thrown);
      assert.ok(errorForClient(error) instanceof MatrixError);
      assert.deepEqual((errorForClient(error) as MatrixError).toJSON(), {
        errcode: 'M_INCOMPATIBLE_ROOM_VERSION',
        error: 'old',
        room_version: '12',
      });
      const plain = { status: 403, errcode: 'M_UNKNOWN', destination: server.name };
      await assert.rejects(requests.request({ ...get(server.name), path: '/_proto/plain' }), plain);
    });

    it('errorForClient hides M_UNKNOWN_TOKEN of another server, which would log the client out', () => {
      const evil = new RemoteError('a.example', 401, { errcode: 'M_UNKNOWN_TOKEN', soft_logout: false });
      const shown = errorForClient(evil) as MatrixError;
      assert.deepEqual([shown.status, shown.errcode], [502, 'M_UNKNOWN']);
    });

    it('retries a few times after short delays while a user waits [option: federation.max_short_retries, federation.max_short_retry_delay]', async () => {
      let times = 0;
      const server = await serve((_request, response) => json(response, ++times > 3 ? 200 : 502, {}));
      const { requests, clock } = await client({ federation: { max_short_retry_delay: 700 } });
      assert.deepEqual(await requests.request(get(server.name)), {});
      assert.equal(clock.delays.length, 3);
      assert.ok(clock.delays.every((delay) => delay >= 400 && delay <= 700));
      times = -10;
      const retrying = await client({ federation: { max_short_retries: 1 } });
      await assert.rejects(retrying.requests.request(get(server.name)), { name: 'RemoteError', status: 502 });
      assert.equal(retrying.clock.delays.length, 1);
    });

    it('retries more often after long delays in the background [option: federation.max_long_retries, federation.max_long_retry_delay]', async () => {
      const server = await serve((_request, response) => json(response, 500, {}));
      const federation = { max_long_retries: 5, max_long_retry_delay: 30_000 };
      const { requests, clock } = await client({ federation });
      await assert.rejects(requests.request({ ...get(server.name), retry: 'long' }), { status: 500 });
      assert.equal(clock.delays.length, 5);
      assert.ok(clock.delays[0]! < 5_000 && clock.delays[1]! > 12_000 && clock.delays[4]! >= 24_000);
      assert.ok(Math.max(...clock.delays) <= 30_000);
    });

    it('waits as long as retry_after_ms of a busy server says, unless that exceeds the maximum delay', async () => {
      let wait = 1_500;
      const server = await serve((_request, response) => {
        const busy = { errcode: 'M_LIMIT_EXCEEDED', retry_after_ms: wait };
        json(response, wait === 0 ? 200 : 429, wait === 0 ? {} : busy);
        wait = 0;
      });
      const { requests, clock } = await client();
      await requests.request(get(server.name));
      assert.deepEqual(clock.delays, [1_500]);
      wait = 60_000;
      await assert.rejects(requests.request(get(server.name)), { status: 429, retryAfter: 60_000 });
    });

    it('rejects with ServerUnavailable after the timeout [option: federation.client_timeout]', async () => {
      const server = await serve(() => undefined);
      const { requests } = await client({ federation: { client_timeout: 50, max_short_retries: 0 } });
      await assert.rejects(requests.request(get(server.name)), { name: 'ServerUnavailable' });
    });

    it('rejects with an aborted error when the caller aborts', async () => {
      const server = await serve(() => undefined);
      const { requests } = await client();
      const signal = AbortSignal.timeout(50);
      await assert.rejects(requests.request({ ...get(server.name), signal }), { failure: 'aborted' });
    });

    it('backs off from an unreachable server, longer after each failure and across restarts [option: federation.destination_min_retry_interval, federation.destination_retry_multiplier, federation.destination_max_retry_interval]', async () => {
      let requestsSeen = 0;
      let status = 503;
      const server = await serve((_request, response) => {
        requestsSeen++;
        json(response, status, {});
      });
      const options = {
        federation: {
          destination_min_retry_interval: 10 * minute,
          destination_retry_multiplier: 10,
          destination_max_retry_interval: 120 * minute,
        },
      };
      const first = await client(options);
      const returned: string[] = [];
      const requestBy = (from: typeof first) => from.requests.request({ ...get(server.name), retry: 'none' });
      await Promise.all([1, 2, 3].map(() => assert.rejects(requestBy(first), { status: 503 })));
      const since = first.clock.now();
      await assert.rejects(requestBy(first), { name: 'ServerUnavailable', retryAt: since + 10 * minute });
      assert.equal(requestsSeen, 3);
      const second = await client(options, first.database);
      second.destinations.onReturn((name) => returned.push(name));
      await assert.rejects(requestBy(second), { retryAt: since + 10 * minute });
      second.clock.advance(10 * minute);
      await assert.rejects(requestBy(second), { status: 503 });
      const destination = await second.destinations.get(server.name);
      assert.equal(destination.failureSince, since);
      assert.ok(destination.retryInterval >= 80 * minute && destination.retryInterval <= 120 * minute);
      second.clock.advance(120 * minute);
      await assert.rejects(requestBy(second), { status: 503 });
      assert.equal((await second.destinations.get(server.name)).retryInterval, 120 * minute);
      status = 200;
      await second.requests.request({ ...get(server.name), ignoreBackoff: true });
      assert.deepEqual(returned, [server.name]);
      assert.equal(await second.destinations.backoffUntil(server.name), undefined);
      assert.equal((await second.destinations.get(server.name)).failureSince, undefined);
    });

    it('sends a server in backoff at most one request for users every ten seconds, does not retry it or extend the backoff when it fails, and ends the backoff when it succeeds', async () => {
      let [requestsSeen, status] = [0, 503];
      const server = await serve((_request, response) => {
        requestsSeen++;
        json(response, status, {});
      });
      const federation = { destination_min_retry_interval: 10 * minute, max_short_retries: 2 };
      const { requests, destinations, clock } = await client({ federation });
      const forUser = () => requests.request({ ...get(server.name), isForUser: true });
      await assert.rejects(requests.request({ ...get(server.name), retry: 'none' }), { status: 503 });
      const { retryLastTs, retryInterval } = await destinations.get(server.name);
      await assert.rejects(forUser(), { name: 'ServerUnavailable' });
      assert.equal(requestsSeen, 1);
      clock.advance(10_000);
      await assert.rejects(forUser(), { status: 503 });
      await assert.rejects(forUser(), { name: 'ServerUnavailable' });
      assert.equal(requestsSeen, 2);
      const after = await destinations.get(server.name);
      assert.deepEqual([after.retryLastTs, after.retryInterval], [retryLastTs, retryInterval]);
      status = 200;
      clock.advance(10_000);
      await forUser();
      assert.equal(await destinations.backoffUntil(server.name), undefined);
    });

    it('learns and stores that the paths of a server begin with /_proto', async () => {
      const paths: string[] = [];
      const server = await serve((request, response) => {
        paths.push(request.url!);
        if (request.url!.startsWith('/_proto/')) json(response, 200, {});
        else json(response, 404, { errcode: 'M_UNRECOGNIZED' });
      });
      const first = await client();
      await first.requests.request(get(server.name));
      const second = await client({}, first.database);
      await second.requests.request(get(server.name));
      assert.deepEqual(paths, ['/_matrix/x', '/_proto/x', '/_proto/x']);
    });

    it('sends no request below /_proto to a server that has answered below /_matrix', async () => {
      const paths: string[] = [];
      const server = await serve((request, response) => {
        paths.push(request.url!);
        if (request.url === '/_matrix/x') json(response, 200, {});
        else json(response, 404, { errcode: 'M_UNRECOGNIZED', error: 'what' });
      });
      const { requests } = await client();
      await requests.request(get(server.name));
      const unknown = { ...get(server.name), path: '/_proto/y' };
      await assert.rejects(requests.request(unknown), { status: 404, isUnrecognized: true });
      assert.deepEqual(paths, ['/_matrix/x', '/_matrix/y']);
    });

    it('tries the next SRV target when no connection to the first succeeds', async () => {
      const server = await serve((_request, response) => json(response, 200, {}));
      const { requests } = await client();
      resolver.srv.set('_matrix-fed._tcp.b.example', [
        { name: 'gone.example', port: 1, priority: 1, weight: 0 },
        { name: 'far.example', port: server.port, priority: 2, weight: 0 },
      ]);
      assert.deepEqual(await requests.request(get('b.example')), {});
      assert.ok(resolver.lookedUpNames.includes('gone.example'));
    });

    it('does not connect to blacklisted addresses, whether a name, an SRV record or an address leads to them [option: ip_range_blacklist]', async () => {
      const { requests } = await client({ federation: { max_short_retries: 0 } });
      resolver.hosts.set('inside.example', ['10.0.0.1']);
      resolver.srv.set('_matrix-fed._tcp.b.example', [
        { name: 'inside.example', port: 8448, priority: 0, weight: 0 },
      ]);
      for (const name of [
        'inside.example:8448',
        'inside.example',
        'b.example',
        '10.0.0.1',
        '[::ffff:10.0.0.1]:8448',
      ]) {
        const error = await requests.request(get(name)).catch((thrown: unknown) => thrown);
        assert.ok(error instanceof ServerUnavailable, name);
        assert.equal((error.cause as { failure?: string }).failure, 'refused-address', name);
      }
    });

    it('rejects requests to servers outside the whitelist, and allows requests to every server when no whitelist is configured [option: federation_domain_whitelist]', async () => {
      const server = await serve((_request, response) => json(response, 200, {}));
      const { requests } = await client({ federation_domain_whitelist: [server.name] });
      assert.deepEqual(await requests.request(get(server.name)), {});
      await assert.rejects(requests.request(get('b.example')), { errcode: 'M_FORBIDDEN' });
      const none = await client({ federation_domain_whitelist: [] });
      await assert.rejects(none.requests.request(get(server.name)), { errcode: 'M_FORBIDDEN' });
      const unrestricted = await client();
      assert.deepEqual(await unrestricted.requests.request(get(server.name)), {});
    });

    it('FederationClient.open returns the body as a stream', async () => {
      const server = await serve((request, response) => {
        if (request.url === '/_matrix/x')
          response.writeHead(200, { 'content-type': 'image/png' }).end('image');
        else json(response, 404, { errcode: 'M_NOT_FOUND', error: 'gone' });
      });
      const { requests } = await client();
      const { body, headers } = await requests.open(get(server.name));
      assert.deepEqual([await text(body), headers['content-type']], ['image', 'image/png']);
      const missing = requests.open({ ...get(server.name), path: '/_proto/y' });
      await assert.rejects(missing, { errcode: 'M_NOT_FOUND', message: 'gone' });
    });

    it('rejects requests to this server itself and to invalid server names', async () => {
      const { requests } = await client();
      await assert.rejects(requests.request(get('here.example')), /requests to itself/);
      await assert.rejects(requests.request(get('a/b')), { name: 'ServerUnavailable' });
    });
  });
});
