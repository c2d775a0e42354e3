import { type AddressInfo, createServer, isIP, type Server, type Socket } from 'node:net';
import { start } from 'node:repl';
import type { HearthConfiguration } from '../../configuration.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import { builtInLogin } from '../../kernel/process/index.ts';
import { type HostKey, readHostKey } from './host-key.ts';
import { loginOf, type ManholeLogin } from './login.ts';
import { LoginAttempts } from './login-attempts.ts';
import { protocolOf } from './protocol.ts';
import { type Console, SshConsole } from './ssh-console.ts';
import { telnetLogin } from './telnet-console.ts';

/** Maximum number of open connections; further ones are closed at once. */
const maxConnections = 16;

/** Milliseconds after which a connection without traffic is closed. */
const maxIdle = 15 * 60_000;

/** Milliseconds after which a connection without a login is closed, so that it does not keep other connections out. */
const loginTimeout = 30_000;

/** Objects that users of the console can inspect; names become variables. */
export type ManholeContext = Readonly<Record<string, unknown>>;

export interface ManholeDeps {
  readonly configuration: HearthConfiguration;
  readonly context: ManholeContext;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface Manhole {
  /** Addresses of the listeners, as `address:port`. */
  readonly addresses: readonly string[];
  close(): Promise<void>;
}

/**
 * Opens the debugging consoles of the configuration: a JavaScript prompt for SSH and telnet clients, on the port of
 * `manhole` at the loopback address and on every listener of the type `manhole`. Telnet is not encrypted, so it is
 * served to clients on this machine only.
 * @returns `undefined` when the configuration has no debugging console
 * @throws StartFailure when a host key cannot be used
 */
export async function openManhole(deps: ManholeDeps): Promise<Manhole | undefined> {
  const { configuration, log } = deps;
  const places = placesOf(configuration);
  if (places.length === 0) return undefined;
  const login = loginOf(configuration);
  const hostKey = readHostKey(configuration);
  warnOfKnownSecrets(places, login, hostKey, log);
  const attempts = new LoginAttempts({ ...deps, login });
  const ssh = new SshConsole({
    hostKey: hostKey.privateKey,
    attempts,
    log,
    open: (console) => prompt(console, deps.context),
  });
  const sockets = new Set<Socket>();
  const accept = (socket: Socket) => {
    if (sockets.size >= maxConnections) return socket.destroy();
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    socket.setTimeout(maxIdle, () => socket.destroy());
    socket.on('error', (error) => log.debug({ err: error }, 'A connection to the debugging console failed'));
    return void serve(socket, ssh, attempts, deps);
  };
  const servers = await Promise.all(places.map(({ host, port }) => listen(host, port, accept, log)));
  return {
    addresses: servers.map((server) => {
      const { address, port } = server.address() as AddressInfo;
      return isIP(address) === 6 ? `[${address}]:${port}` : `${address}:${port}`;
    }),
    async close() {
      for (const socket of sockets) socket.destroy();
      await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
    },
  };
}

/** The address and port of one listener. */
interface Place {
  readonly host: string;
  readonly port: number;
}

function placesOf({ process, http }: HearthConfiguration): Place[] {
  const listeners = http.listeners.flatMap(({ type, port, bind_addresses }) =>
    type === 'manhole' && port !== null
      ? (bind_addresses ?? ['127.0.0.1']).map((host) => ({ host, port }))
      : [],
  );
  const { manhole } = process;
  return manhole === null ? listeners : [{ host: '127.0.0.1', port: manhole }, ...listeners];
}

/** Warns about a password and a host key that are publicly known. */
function warnOfKnownSecrets(
  places: readonly Place[],
  { password }: ManholeLogin,
  { isBuiltIn }: HostKey,
  log: Logger,
): void {
  const addresses = places.map(({ host, port }) => `${host}:${port}`);
  const isReachable = places.some(({ host }) => !isLoopback(host));
  if (password === builtInLogin.password) {
    const text =
      'The debugging console accepts a publicly known password: anyone who can connect to it controls the server. Set manhole_settings.password';
    if (isReachable) log.error({ addresses }, text);
    else log.warn({ addresses }, text);
  }
  if (isBuiltIn) {
    log.warn(
      { addresses },
      'The debugging console uses a publicly known host key: on a network, others can read and change its SSH traffic. Set manhole_settings.ssh_priv_key_path',
    );
  }
}

const isLoopback = (address: string) =>
  /^(::ffff:)?127\./.test(address) || address === '::1' || address === 'localhost';

function listen(host: string, port: number, accept: (socket: Socket) => void, log: Logger): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer(accept);
    server.once('error', reject);
    server.listen(port, host, () => {
      server.on('error', (error) =>
        log.warn({ err: error }, 'The debugging console cannot accept a connection'),
      );
      resolve(server);
    });
  });
}

async function serve(
  socket: Socket,
  ssh: SshConsole,
  attempts: LoginAttempts,
  { context, clock, log }: ManholeDeps,
): Promise<void> {
  const ip = socket.remoteAddress ?? '';
  const timer = clock.setTimer(loginTimeout, () => socket.destroy());
  const stopTimer = () => timer.cancel();
  socket.once('close', stopTimer);
  const protocol = await protocolOf(socket, clock);
  if (socket.destroyed) return;
  if (protocol === 'ssh') ssh.serve(socket, stopTimer);
  else if (!isLoopback(ip)) {
    log.warn({ ip }, 'Refused telnet to the debugging console from another machine');
    socket.end('Use SSH: telnet is served to clients on the machine of the server only.\r\n');
  } else if (await telnetLogin(socket, attempts)) {
    stopTimer();
    prompt({ stream: socket, isTerminal: false }, context);
  }
}

function prompt({ stream, isTerminal }: Console, context: ManholeContext): void {
  const opened = start({ prompt: 'hearth> ', input: stream, output: stream, terminal: isTerminal });
  Object.assign(opened.context, context);
  opened.once('exit', () => {
    // The exit status of the SSH client.
    if ('exit' in stream) stream.exit(0);
    stream.end();
  });
}
