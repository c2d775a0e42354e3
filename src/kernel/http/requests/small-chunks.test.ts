import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { after, afterEach, before, describe, it } from 'node:test';
import { Type } from 'typebox';
import { createKernelServer } from '../../../../test/support/servers/kernel-server.ts';
import { route } from '../index.ts';

/** A chunk of one byte in the chunked transfer coding. */
const oneByte = '1\r\n1\r\n';

describe('bodies that arrive in small chunks', () => {
  const server = createKernelServer({
    routes: [
      route(
        { method: 'POST', path: '/_proto/client/json', auth: 'none', body: Type.Any(), bodyLimit: 10_000 },
        ({ body }) => ({ length: String(body).length }),
      ),
      route(
        {
          method: 'POST',
          path: '/_proto/client/stream',
          auth: 'none',
          bodyMode: 'stream',
          bodyLimit: 10_000,
        },
        async ({ stream }) => ({ length: (await text(stream!)).length }),
      ),
    ],
  });
  let port = 0;
  const sockets: Socket[] = [];
  before(async () => {
    port = Number(new URL((await server.start())[0]!).port);
  });
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy();
  });
  after(() => server.stop(100));

  /** Sends the head of a request with a chunked body, and these chunks. */
  function send(path: string, chunks: string): Socket {
    const socket = connect(port, '127.0.0.1');
    sockets.push(socket);
    socket.on('error', () => undefined);
    const head = `POST /_matrix/client/${path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n`;
    socket.write(head + chunks);
    return socket;
  }

  /** Resolves with all that the server sends until it closes the connection. */
  const received = (socket: Socket) =>
    new Promise<string>((resolve) => {
      let answer = '';
      socket.on('data', (bytes) => {
        answer += String(bytes);
      });
      socket.once('close', () => resolve(answer));
    });

  for (const path of ['json', 'stream']) {
    it(`answers 413 M_TOO_LARGE to a body of 5,000 chunks of one byte, and closes the connection (${path})`, async () => {
      const answer = await received(send(path, oneByte.repeat(5_000)));
      assert.match(answer, /^HTTP\/1.1 413 .*\r\nConnection: close\r\n.*"errcode":"M_TOO_LARGE"/s);
    });

    it(`accepts a body of 4,000 chunks of one byte (${path})`, async () => {
      const socket = send(path, `${oneByte.repeat(4_000)}0\r\n\r\n`);
      const answer = await new Promise<string>((resolve) =>
        socket.once('data', (bytes) => resolve(String(bytes))),
      );
      assert.match(answer, /^HTTP\/1.1 200 .*"length":\d+\}$/s);
    });

    it(`closes the connection when a body that was refused as too large goes on in chunks of one byte (${path})`, async () => {
      const socket = send(path, `2711\r\n${'1'.repeat(10_001)}\r\n`);
      const closed = received(socket);
      await new Promise((resolve) => socket.once('data', resolve));
      socket.write(oneByte.repeat(5_000));
      assert.match(await closed, /^HTTP\/1.1 413 /);
    });
  }
});
