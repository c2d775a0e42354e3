/**
 * The ceiling: a minimal server, which shows how many events this machine and this Node can process at most. It serves
 * the few endpoints that its scenarios use. For each event it does only this part of a homeserver's work: parse one
 * JSON body, compute one SHA-256 and one Ed25519 signature, insert one row durably.
 *
 * node bench/ceiling/main.ts PORT DATABASE
 *
 * Signing runs on the thread pool, because that is faster than on the main thread.
 */
import { generateKeyPairSync, hash, sign } from 'node:crypto';
import Fastify, { type FastifyReply, type FastifyRequest } from 'fastify';
import { addBareStreams } from './bare-streams.ts';
import { Journal } from './journal.ts';

const [port, file] = process.argv.slice(2);
if (port === undefined || file === undefined) throw new Error('usage: main.ts PORT DATABASE');

const { privateKey } = generateKeyPairSync('ed25519');
const journal = new Journal(file);
const userByToken = new Map<string, string>();
const app = Fastify();
const client = '/_matrix/client/v3';
let rooms = 0;
let depth = 0;

function signature(text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    sign(null, Buffer.from(text), privateKey, (error, bytes) =>
      error ? reject(error) : resolve(bytes.toString('base64')),
    );
  });
}

/** Signs and stores an event. @returns its id */
async function append(type: string, room: string, sender: string, content: unknown): Promise<string> {
  const event = { type, room_id: room, sender, origin_server_ts: Date.now(), content, depth: ++depth };
  const json = JSON.stringify(event);
  const id = `$${hash('sha256', json, 'base64url')}`;
  const signatures = { ceiling: { 'ed25519:1': await signature(json) } };
  await journal.append(id, JSON.stringify({ ...event, signatures }));
  return id;
}

/** A request after `authenticate`. */
interface Authenticated extends FastifyRequest {
  userId: string;
}

app.decorateRequest('userId', '');

function userOf(request: FastifyRequest): string {
  return (request as Authenticated).userId;
}

async function authenticate(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
  const user = userByToken.get(request.headers.authorization?.slice('Bearer '.length) ?? '');
  if (user === undefined) return reply.code(401).send({ errcode: 'M_UNKNOWN_TOKEN', error: 'Unknown token' });
  (request as Authenticated).userId = user;
  return undefined;
}

const authenticated = { onRequest: authenticate };

app.get('/_matrix/client/versions', async () => ({ versions: [] }));
app.get('/_synapse/admin/v1/register', async () => ({ nonce: 'n' }));
app.post<{ Body: { username: string } }>('/_synapse/admin/v1/register', async ({ body }) => {
  const access_token = `token${userByToken.size}`;
  const user_id = `@${body.username}:ceiling`;
  userByToken.set(access_token, user_id);
  return { user_id, access_token };
});
app.post(`${client}/createRoom`, authenticated, async () => ({ room_id: `!${rooms++}:ceiling` }));
app.post<{ Params: { room: string }; Body: unknown }>(
  `${client}/join/:room`,
  authenticated,
  async (request) => {
    await append('m.room.member', request.params.room, userOf(request), request.body);
    return { room_id: request.params.room };
  },
);
app.put<{ Params: { room: string; type: string }; Body: unknown }>(
  `${client}/rooms/:room/send/:type/:transaction`,
  authenticated,
  async (request) => {
    const { room, type } = request.params;
    return { event_id: await append(type, room, userOf(request), request.body) };
  },
);
app.get(`${client}/sync`, authenticated, async () => ({}));

addBareStreams(app);
await app.listen({ host: '127.0.0.1', port: Number(port) });
