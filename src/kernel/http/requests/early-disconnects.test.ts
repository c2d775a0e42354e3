import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { describe, it } from 'node:test';
import { Type } from 'typebox';
import { eventually } from '../../../../test/clients/eventually.ts';
import { createKernelServer, logLines } from '../../../../test/support/servers/kernel-server.ts';
import { type Requester, type Route, route } from '../index.ts';

const path = '/_proto/client/v3/body';

/** The error with which the streamed body of a request ended. */
let streamEnd: unknown;

const routes: Readonly<Record<string, Route>> = {
  'a JSON body': route({ method: 'POST', path, auth: 'user', body: Type.Object({}) }, () => ({})),
  'a streamed body': route({ method: 'POST', path, auth: 'user', bodyMode: 'stream' }, async ({ stream }) => {
    try {
      for await (const _ of stream ?? []);
    } catch (error) {
      streamEnd = error;
    }
    return {};
  }),
};

describe('a request whose client disconnects while it is authenticated', () => {
  for (const [body, only] of Object.entries(routes)) {
    it(`is ended when it has ${body}, although it emits no further event`, {
      timeout: 10_000,
    }, async () => {
      const authentication = Promise.withResolvers<Requester>();
      let hasBegun = false;
      let isClosed = false;
      const server = createKernelServer({
        routes: [only],
        authenticator: {
          authenticate: (_token, context) => {
            (context as unknown as { response: NodeJS.EventEmitter }).response.once('close', () => {
              isClosed = true;
            });
            hasBegun = true;
            return authentication.promise;
          },
        },
      });
      const [address = ''] = await server.start();
      logLines.length = 0;
      const socket = connect(Number(new URL(address).port), '127.0.0.1');
      const head = 'POST /_matrix/client/v3/body HTTP/1.1\r\nhost: a\r\nauthorization: Bearer a\r\n';
      socket.write(`${head}content-length: 100\r\n\r\n{"a"`);
      await eventually('the authentication', () => hasBegun);
      socket.destroy();
      await eventually('the end of the connection', () => isClosed);
      authentication.resolve({ userId: '@a:test', deviceId: 'D' } as Requester);
      await eventually('the end of the request', () => logLines.some((line) => line.includes('"Request"')));
      if (body === 'a streamed body') assert.match(String(streamEnd), /ended too early/);
      await server.stop(100);
    });
  }
});
