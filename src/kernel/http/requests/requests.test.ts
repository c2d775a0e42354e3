import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, it } from 'node:test';
import { kernelServerForTests, listOrders } from '../../../../test/support/servers/kernel-server.ts';

const { base, call, fails } = kernelServerForTests();

describe('request bodies', () => {
  const echo = '/_matrix/client/v3/echo';
  const post = (body: string | Uint8Array<ArrayBuffer>, type?: string) => ({
    body,
    headers: type === undefined ? {} : { 'content-type': type },
  });

  it('parses a JSON body whatever its content type is', async () => {
    for (const type of ['application/json', 'text/plain', 'no/such; type=', 'nonsense', undefined]) {
      assert.deepEqual((await call('POST', echo, post('{"name":"é"}', type))).body, { name: 'é' });
    }
  });

  it('accepts an absent JSON body if the schema accepts an empty object, and otherwise answers 400 M_NOT_JSON', async () => {
    assert.deepEqual((await call('PUT', '/_matrix/client/v3/anything')).body, { body: {} });
    await fails(400, 'M_NOT_JSON', 'POST', echo);
  });

  it('answers 400 to a body that is not JSON or does not match the schema, and 413 M_TOO_LARGE to a body that is too large', async () => {
    const missing = await fails(400, 'M_BAD_JSON', 'POST', echo, post('{}'));
    assert.match(String(missing.body['error']), /'name' is missing/);
    await fails(400, 'M_BAD_JSON', 'POST', echo, post('{"name":1}'));
    await fails(400, 'M_BAD_JSON', 'POST', echo, post('{"name":"a","age":1.5}'));
    await fails(400, 'M_BAD_JSON', 'POST', echo, post('[]'));
    await fails(400, 'M_BAD_JSON', 'POST', echo, post('null'));
    await fails(400, 'M_NOT_JSON', 'POST', echo, post('{"name":'));
    await fails(400, 'M_NOT_JSON', 'POST', echo, post(Uint8Array.of(0x22, 0xff, 0x22)));
    await fails(400, 'M_BAD_JSON', 'POST', echo, post('{"name":"\\ud800"}'));
    await fails(400, 'M_BAD_JSON', 'POST', echo, post('{"name":"a","__proto__":{}}'));
    await fails(400, 'M_BAD_JSON', 'POST', echo, post('{"name":"a","more":[{"\\u005f_proto__":1}]}'));
    await fails(
      400,
      'M_BAD_JSON',
      'POST',
      echo,
      post(`{"name":"a","more":${'['.repeat(500)}${']'.repeat(500)}}`),
    );
    await fails(413, 'M_TOO_LARGE', 'POST', echo, post(JSON.stringify({ name: 'a'.repeat(10_000) })));
    const chunked = { body: ReadableStream.from(['{"name":"', 'a'.repeat(10_000), '"}']), duplex: 'half' };
    await fails(413, 'M_TOO_LARGE', 'POST', echo, chunked as RequestInit);
  });

  it('gives a route with bodyMode stream the body as a stream, up to the limit of the route', async () => {
    const upload = '/_matrix/media/v3/upload';
    assert.deepEqual((await call('POST', upload, post('x'.repeat(1000)))).body, { length: 1000 });
    await fails(413, 'M_TOO_LARGE', 'POST', upload, post('x'.repeat(1001)));
    const chunked = { body: ReadableStream.from(['x'.repeat(600), 'x'.repeat(600)]), duplex: 'half' };
    await fails(413, 'M_TOO_LARGE', 'POST', upload, chunked as RequestInit);
  });

  it('leaves the connection usable after a body was rejected', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const body = 'x'.repeat(1_000_000);
    const statuses: number[] = [];
    for (const path of ['/_matrix/media/v3/upload', echo, '/_matrix/client/v3/nothing', '/health']) {
      const method = path === '/health' ? 'GET' : 'POST';
      const request = httpRequest(base() + path, { agent, method });
      if (method === 'POST') request.write(body.slice(0, 500_000));
      request.end(method === 'POST' ? body.slice(500_000) : undefined);
      const [response] = (await once(request, 'response')) as [IncomingMessage];
      await text(response);
      statuses.push(response.statusCode!);
    }
    assert.deepEqual(statuses, [413, 413, 404, 200]);
    agent.destroy();
  });
});

describe('query parameters', () => {
  it('converts query parameters, and fills in the defaults of absent parameters', async () => {
    const { body } = await call('GET', '/_matrix/client/v3/list?dir=f&full=true&server=a&other=1');
    assert.deepEqual(body, { dir: 'f', limit: 10, full: true, server: ['a'], other: '1' });
    const { body: twice } = await call(
      'GET',
      '/_matrix/client/v3/list?dir=b&dir=f&limit=5&server=a&server=b',
    );
    assert.deepEqual(twice, { dir: 'b', limit: 5, server: ['a', 'b'] });
  });

  it('answers 400 M_MISSING_PARAM or M_INVALID_PARAM to query parameters that do not match the schema', async () => {
    await fails(400, 'M_MISSING_PARAM', 'GET', '/_matrix/client/v3/list');
    await fails(400, 'M_INVALID_PARAM', 'GET', '/_matrix/client/v3/list?dir=x');
    const { body } = await call('GET', '/_matrix/client/v3/list?dir=x');
    assert.equal(body['error'], `Query parameter 'dir' must be "f" or "b"`);
    const { body: ordered } = await call('GET', '/_matrix/client/v3/list?dir=f&order=none');
    const allOrders = listOrders.map((order) => JSON.stringify(order)).join(' or ');
    assert.equal(ordered['error'], `Query parameter 'order' must be ${allOrders}`);
    await fails(400, 'M_INVALID_PARAM', 'GET', '/_matrix/client/v3/list?dir=f&limit=many');
    await fails(400, 'M_INVALID_PARAM', 'GET', '/_matrix/client/v3/list?dir=f&limit=1e3');
    await fails(400, 'M_INVALID_PARAM', 'GET', '/_matrix/client/v3/list?dir=f&full=yes');
  });
});

describe('requests that cannot be parsed', () => {
  async function send(bytes: string): Promise<string> {
    const socket = connect(Number(new URL(base()).port), '127.0.0.1');
    socket.end(bytes);
    return text(socket);
  }

  it('answers 400 M_UNKNOWN to a request that is not HTTP, and 431 M_TOO_LARGE to a request with a long URL', async () => {
    assert.match(await send('nonsense\r\n\r\n'), /^HTTP\/1.1 400 .*"errcode":"M_UNKNOWN"/s);
    const long = `GET /_matrix/client/versions?${'a'.repeat(70_000)} HTTP/1.1\r\nHost: x\r\n\r\n`;
    assert.match(await send(long), /^HTTP\/1.1 431 .*"errcode":"M_TOO_LARGE"/s);
  });
});
