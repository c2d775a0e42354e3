import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, describe, it } from 'node:test';
import { type ConnectionLimits, listen, type OpenListener } from './listeners.ts';

let listening: OpenListener | undefined;

const answerAtOnce: RequestListener = (request, response) => {
  request.on('error', () => undefined);
  request.resume().on('end', () => response.end('all of it'));
};

/** Listens on a free port. @returns the port */
async function start(limits?: ConnectionLimits, answer: RequestListener = answerAtOnce): Promise<number> {
  const bind = { kind: 'tcp' as const, port: 0, addresses: ['127.0.0.1'], tls: undefined };
  [listening] = await listen(
    { name: 'test', bind, resources: [], forwarded: false, requestIdHeader: undefined },
    answer,
    limits,
  );
  return Number(new URL(listening!.address).port);
}

/** Sends these bytes and leaves the connection open. @returns all that comes back before the server closes it */
const sendAndWait = (port: number, bytes: string) => {
  const socket = connect(port, '127.0.0.1');
  socket.write(bytes);
  return text(socket);
};

const shortTimeouts = { headersTimeout: 50, requestTimeout: 150, connectionsCheckingInterval: 20 };

describe('connection limits', () => {
  afterEach(() => {
    listening?.server.closeAllConnections();
    listening?.server.close();
  });

  it('answers 408 when the head of a request does not arrive within the timeout', async () => {
    const answer = await sendAndWait(await start(shortTimeouts), 'GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ');
    assert.match(answer, /^HTTP\/1.1 408 .*"errcode":"M_UNKNOWN","error":"The request took too long/s);
    assert.match(answer, /\r\nConnection: close\r\n/);
  });

  it('answers 408 when the body of a request does not arrive within the timeout', async () => {
    const head = 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{';
    assert.match(await sendAndWait(await start(shortTimeouts), head), /^HTTP\/1.1 408 /);
  });

  it('keeps idle connections for 75 seconds, and waits 60 seconds for the head of a request and 300 seconds for the whole request', async () => {
    const port = await start();
    const socket = connect(port, '127.0.0.1');
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    const [first] = (await once(socket, 'data')) as [Buffer];
    assert.match(first.toString(), /\r\nKeep-Alive: timeout=75\r\n/);
    socket.destroy();
    const { server } = listening!;
    assert.deepEqual([server.headersTimeout, server.requestTimeout], [60_000, 300_000]);
  });

  it('answers 431 to a head larger than 64 KiB', async () => {
    const answer = await sendAndWait(
      await start(),
      `GET / HTTP/1.1\r\nX-Large: ${'a'.repeat(65_536)}\r\n\r\n`,
    );
    assert.match(answer, /^HTTP\/1.1 431 .*"errcode":"M_TOO_LARGE"/s);
  });

  it('closes a connection without an answer when malformed bytes arrive while another response is being sent', async () => {
    const port = await start(undefined, (_request, response) => {
      response.writeHead(200, { 'content-length': 100 }).write('the beginning');
    });
    const socket = connect(port, '127.0.0.1');
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    const [first] = (await once(socket, 'data')) as [Buffer];
    assert.match(first.toString(), /the beginning$/);
    socket.write('nonsense\r\n\r\n');
    const rest = await text(socket).catch(() => '');
    assert.equal(rest, '');
  });

  it('answers each of two requests that are pipelined on one connection', async () => {
    const port = await start();
    const get = 'GET / HTTP/1.1\r\nHost: x\r\n';
    const answer = await sendAndWait(port, `${get}\r\n${get}Connection: close\r\n\r\n`);
    assert.equal(answer.match(/HTTP\/1.1 200 OK/g)?.length, 2);
  });

  it('handles the requests that are pipelined on one connection one at a time, in order', async () => {
    let handled = 0;
    let mostAtOnce = 0;
    let open = 0;
    const port = await start(undefined, (_request, response) => {
      mostAtOnce = Math.max(mostAtOnce, ++open);
      const number = ++handled;
      setImmediate(() => {
        open--;
        response.end(`answer ${number};`);
      });
    });
    const get = 'GET / HTTP/1.1\r\nHost: x\r\n';
    const requests = `${get}\r\n`.repeat(49);
    const answer = await sendAndWait(port, `${requests}${get}Connection: close\r\n\r\n`);
    assert.equal(mostAtOnce, 1);
    const numbers = [...answer.matchAll(/answer (\d+);/g)].map(([, number]) => Number(number));
    assert.deepEqual(
      numbers,
      Array.from({ length: 50 }, (_, index) => index + 1),
    );
  });

  it('closes a connection on which more than 100 requests wait for an earlier response', {
    timeout: 600_000,
  }, async () => {
    let handled = 0;
    const port = await start(undefined, () => handled++);
    const requests = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(102);
    assert.equal(await sendAndWait(port, requests).catch(() => ''), '');
    assert.equal(handled, 1);
  });

  it('handles no further request on a connection that a response closes', async () => {
    let handled = 0;
    const port = await start(undefined, (_request, response) => {
      handled++;
      setImmediate(() => response.writeHead(413, { connection: 'close' }).end('too large'));
    });
    const answer = await sendAndWait(port, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(3));
    assert.match(answer, /413/);
    assert.equal(handled, 1);
  });
});
