import { createHash, timingSafeEqual } from 'node:crypto';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { createInterface } from 'node:readline/promises';
import { start } from 'node:repl';
import type { HearthConfiguration } from '../configuration.ts';
import type { Logger } from '../kernel/observability/index.ts';
import { builtInLogin } from '../kernel/process/index.ts';

/** Objects that the console can inspect; names become variables. */
export type ManholeContext = Readonly<Record<string, unknown>>;

export interface Manhole {
  /** Addresses of the listeners, as `address:port`. */
  readonly addresses: readonly string[];
  close(): Promise<void>;
}

/**
 * Opens the debugging consoles of the configuration: a JavaScript prompt for `telnet`, on the port of `manhole` at
 * the loopback address and on every listener of the type `manhole`. `undefined` when there are none.
 */
export async function openManhole(
  configuration: HearthConfiguration,
  context: ManholeContext,
  log: Logger,
): Promise<Manhole | undefined> {
  const places = placesOf(configuration);
  if (places.length === 0) return undefined;
  const { username, password } = configuration.process.manhole_settings;
  const credentials = {
    username: username ?? builtInLogin.username,
    password: password ?? builtInLogin.password,
  };
  const sockets = new Set<Socket>();
  const servers = await Promise.all(
    places.map(({ host, port }) =>
      listen(host, port, (socket) => {
        sockets.add(socket);
        socket.once('close', () => sockets.delete(socket));
        socket.on('error', (error) => log.debug({ err: error }, 'Debugging console'));
        void serve(socket, credentials, context, log);
      }),
    ),
  );
  return {
    addresses: servers.map((server) => {
      const { address, port } = server.address() as AddressInfo;
      return `${address}:${port}`;
    }),
    async close() {
      for (const socket of sockets) socket.destroy();
      await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
    },
  };
}

function placesOf({ process, http }: HearthConfiguration): { host: string; port: number }[] {
  const listeners = http.listeners.flatMap(({ type, port, bind_addresses }) =>
    type === 'manhole' && port !== null
      ? (bind_addresses ?? ['127.0.0.1']).map((host) => ({ host, port }))
      : [],
  );
  const { manhole } = process;
  return manhole === null ? listeners : [{ host: '127.0.0.1', port: manhole }, ...listeners];
}

function listen(host: string, port: number, accept: (socket: Socket) => void): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer(accept);
    server.once('error', reject);
    server.listen(port, host, () => resolve(server));
  });
}

async function serve(
  socket: Socket,
  credentials: typeof builtInLogin,
  context: ManholeContext,
  log: Logger,
): Promise<void> {
  const lines = createInterface({ input: socket, output: socket });
  try {
    const username = await lines.question('Username: ');
    const password = await lines.question('Password: ');
    lines.close();
    if (!same(username, credentials.username) || !same(password, credentials.password)) {
      log.warn({ ip: socket.remoteAddress }, 'Refused a login to the debugging console');
      socket.end('Refused.\r\n');
      return;
    }
    log.info({ ip: socket.remoteAddress }, 'Login to the debugging console');
    const prompt = start({ prompt: 'hearth> ', input: socket, output: socket, terminal: false });
    Object.assign(prompt.context, context);
    prompt.once('exit', () => socket.end());
  } catch {
    // The connection was closed before it answered.
    socket.destroy();
  }
}

const same = (given: string, expected: string) => timingSafeEqual(digest(given), digest(expected));

const digest = (text: string) => createHash('sha256').update(text).digest();
