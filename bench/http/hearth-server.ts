/** Serves one route, which answers with an event id, with the HTTP kernel of Hearth. Discards request logs. */
import { Type } from 'typebox';
import { systemClock } from '../../src/kernel/clock.ts';
import { createHttpServer, type Requester, route } from '../../src/kernel/http/index.ts';
import { createLogger } from '../../src/kernel/observability/index.ts';

const requester: Requester = {
  userId: '@a:test',
  deviceId: 'A',
  isGuest: false,
  isAdmin: false,
  appservice: undefined,
  tokenId: 1,
};

const send = route(
  {
    method: 'PUT',
    path: '/_proto/client/v3/rooms/:roomId/send/:type/:txn',
    auth: 'user',
    body: Type.Object({ msgtype: Type.String(), body: Type.Optional(Type.String()) }),
  },
  ({ params }) => ({ event_id: `$${params.txn}` }),
);

const level = process.env['LOG_LEVEL'] === 'info' ? 'info' : 'warn';
const server = createHttpServer({
  listeners: [
    {
      name: 'bench',
      bind: { kind: 'tcp', port: 0, addresses: ['127.0.0.1'], tls: undefined },
      resources: [{ names: ['client'], compress: false }],
      forwarded: false,
      requestIdHeader: undefined,
    },
  ],
  routes: [send],
  authenticator: { authenticate: () => requester },
  log: createLogger({ level, destination: { write: () => {} } }),
  clock: systemClock,
});
const [address] = await server.start();
process.send!(Number(new URL(address!).port));
process.on('message', () => process.send!(process.cpuUsage()));
