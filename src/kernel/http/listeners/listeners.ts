import { access, chmod, lstat, readFile, rm } from 'node:fs/promises';
import { createServer, type RequestListener, type Server, type ServerOptions } from 'node:http';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https';
import { connect, type Socket } from 'node:net';
import { dirname, resolve } from 'node:path';
import { createSecureContext } from 'node:tls';
import { startStep } from '../../start-failure.ts';
import type { Route } from '../routing/route.ts';
import { refuseMalformed } from './malformed-requests.ts';
import { oneAtATimePerConnection } from './one-at-a-time.ts';
import type { ListenerResource } from './resources.ts';

/** Address and resources of one listener (option `listeners`). */
export interface ListenerOptions {
  /** Names the listener in the log: its `tag`, port or path. */
  readonly name: string;
  readonly bind: TcpBinding | UnixBinding;
  readonly resources: readonly ListenerResource[];
  /** Routes that only this listener serves, whatever its resources are. */
  readonly additionalRoutes?: readonly Route[];
  /** Whether the address of the client is taken from `X-Forwarded-For`. */
  readonly forwarded: boolean;
  /** Request header whose value becomes the request id in the log. */
  readonly requestIdHeader: string | undefined;
}

export interface TcpBinding {
  readonly kind: 'tcp';
  /** 0 takes a free port. */
  readonly port: number;
  /** Local addresses, at least one. */
  readonly addresses: readonly string[];
  readonly tls: TlsFiles | undefined;
}

/** Paths of PEM files. */
export interface TlsFiles {
  readonly certificate: string;
  readonly key: string;
}

export interface UnixBinding {
  readonly kind: 'unix';
  readonly path: string;
  /** Permissions of the socket, for instance 0o666. */
  readonly mode: number;
}

/** A server that listens, and its address. */
export interface OpenListener {
  readonly server: Server | TlsServer;
  /** `http://127.0.0.1:8008`, `https://[::1]:8448` or `unix:/run/hearth.sock`. */
  readonly address: string;
  /** Reads the certificate files again; new connections use the new certificate. */
  reload(): Promise<void>;
  /** Closes idle connections, which have no request that is being answered. */
  closeIdle(): void;
}

/** Limits of one connection: the size of the request head in bytes, and times in milliseconds. */
export type ConnectionLimits = Pick<
  ServerOptions,
  'maxHeaderSize' | 'headersTimeout' | 'requestTimeout' | 'keepAliveTimeout' | 'connectionsCheckingInterval'
>;

const defaultLimits: ConnectionLimits = {
  // The query of a request may contain a filter, which can be long.
  maxHeaderSize: 64 * 1024,
  headersTimeout: 60_000,
  // Includes the time for the body, which may be a large upload over a slow connection.
  requestTimeout: 300_000,
  // Longer than reverse proxies keep idle connections, so that the proxy closes them and loses no request.
  keepAliveTimeout: 75_000,
  connectionsCheckingInterval: 30_000,
};

/** Opens the sockets of a listener. Leaves out the IPv6 addresses `::` and `::1` where the machine has no IPv6. */
export async function listen(
  options: ListenerOptions,
  handler: RequestListener,
  limits = defaultLimits,
): Promise<OpenListener[]> {
  const { bind } = options;
  const handle = oneAtATimePerConnection(handler);
  if (bind.kind === 'unix') return [await listenUnix(bind, handle, limits)];
  const opened: OpenListener[] = [];
  let { port } = bind;
  let lastError: unknown;
  for (const address of bind.addresses) {
    try {
      const listening = await listenTcp(bind, address, port, handle, limits);
      port = portOf(listening.server);
      opened.push(listening);
    } catch (error) {
      lastError = error;
      if (isIPv6Missing(address, error)) continue;
      for (const { server } of opened) server.close();
      throw error;
    }
  }
  if (opened.length === 0) throw lastError;
  return opened;
}

async function listenTcp(
  bind: TcpBinding,
  host: string,
  port: number,
  handler: RequestListener,
  limits: ConnectionLimits,
): Promise<OpenListener> {
  const { tls } = bind;
  const server =
    tls === undefined
      ? createServer(limits, handler)
      : createTlsServer({ ...limits, ...(await readTls(tls)) }, handler);
  server.on('clientError', refuseMalformed);
  server.on(tls === undefined ? 'connection' : 'secureConnection', rememberAddress);
  await startListening(server, () => server.listen({ port, host, backlog: 511, ipv6Only: host === '::' }));
  const authority = `${host.includes(':') ? `[${host}]` : host}:${portOf(server)}`;
  return {
    server,
    address: `${tls === undefined ? 'http' : 'https'}://${authority}`,
    closeIdle: closerOfIdleConnections(server),
    reload: async () => {
      if (tls !== undefined) (server as TlsServer).setSecureContext(await readTls(tls));
    },
  };
}

async function listenUnix(
  { path, mode }: UnixBinding,
  handler: RequestListener,
  limits: ConnectionLimits,
): Promise<OpenListener> {
  const server = createServer(limits, handler);
  server.on('clientError', refuseMalformed);
  await startStep('listeners[].path', () => removeOldSocket(path));
  await startListening(server, () => server.listen({ path, backlog: 511 }));
  await chmod(path, mode);
  return {
    server,
    address: `unix:${path}`,
    closeIdle: closerOfIdleConnections(server),
    reload: async () => {},
  };
}

/**
 * Reads the address of a client while it is connected, so that Node keeps it: after the client has disconnected, Node
 * returns only an address that was read before. Closes a connection whose client has disconnected already.
 */
function rememberAddress(socket: Socket): void {
  if (socket.remoteAddress === undefined) socket.destroy();
}

/**
 * Returns a function that closes idle connections, and connections that have sent no request yet: browsers open these
 * in advance, and Node does not count them as idle.
 */
function closerOfIdleConnections(server: Server): () => void {
  const sockets = new Set<Socket>();
  const add = (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  };
  server.on('connection', add);
  // The socket of `connection` also counts the bytes of the TLS handshake, this one only those of requests.
  server.on('secureConnection', add);
  return () => {
    server.closeIdleConnections();
    for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy();
  };
}

/**
 * Deletes a socket that a crash left behind, so that the path is free.
 * @throws Error when the path is a file of another kind, which is kept, or its directory does not exist
 */
async function removeOldSocket(path: string): Promise<void> {
  const found = await lstat(path).catch(() => undefined);
  if (found === undefined) await access(dirname(resolve(path)));
  else if (!found.isSocket()) throw new Error(`${path} exists and is not a socket`);
  else if (!(await isListening(path))) await rm(path, { force: true });
}

/** Whether a process listens on a Unix socket. A file that a crash left behind does not answer. */
function isListening(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

function startListening(server: Server, start: () => void): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.once('listening', () => {
      server.off('error', reject);
      resolve();
    });
    start();
  });
}

/** Reads a certificate and its key. @throws StartFailure when a file cannot be read, or TLS cannot use them */
async function readTls({ certificate, key }: TlsFiles): Promise<{ cert: Buffer; key: Buffer }> {
  const read = (option: string, file: string) =>
    startStep(`${option}: cannot read ${file}`, () => readFile(file));
  const files = {
    cert: await read('tls_certificate_path', certificate),
    key: await read('tls_private_key_path', key),
  };
  const names = `tls_certificate_path and tls_private_key_path: cannot use ${certificate} and ${key}`;
  return startStep(names, async () => {
    createSecureContext(files);
    return files;
  });
}

function portOf(server: Server): number {
  const address = server.address();
  return address !== null && typeof address === 'object' ? address.port : 0;
}

/**
 * Whether listening failed because the machine has no IPv6. Then the wildcard and loopback addresses of IPv4 suffice.
 */
const isIPv6Missing = (address: string, error: unknown) =>
  ['::', '::1'].includes(address) &&
  ['EAFNOSUPPORT', 'EADDRNOTAVAIL'].includes(String((error as NodeJS.ErrnoException).code));
