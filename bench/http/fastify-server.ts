/** Bare Fastify with a JSON body, a schema and a token check. */
import type { AddressInfo } from 'node:net';
import { fastify } from 'fastify';

const app = fastify();
app.put(
  '/_matrix/client/v3/rooms/:roomId/send/:type/:txn',
  {
    schema: {
      body: {
        type: 'object',
        required: ['msgtype'],
        properties: { msgtype: { type: 'string' }, body: { type: 'string' } },
      },
    },
  },
  async (request) => {
    if (request.headers.authorization !== 'Bearer token') throw new Error('unknown token');
    return { event_id: `$${(request.params as { txn: string }).txn}` };
  },
);
await app.listen({ port: 0, host: '127.0.0.1' });
process.send!((app.server.address() as AddressInfo).port);
process.on('message', () => process.send!(process.cpuUsage()));
