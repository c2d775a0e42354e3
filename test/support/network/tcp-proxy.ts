import type { AddressInfo } from 'node:net';
import { connect, createServer, type Socket } from 'node:net';

/**
 * A TCP proxy: an address that stays the same when the server behind it restarts, and that a test can
 * disconnect.
 */
export interface TcpProxy {
  readonly port: number;
  /** The port that connections are forwarded to; `undefined` resets them. */
  target: number | undefined;
  /**
   * Number of connections that were refused, because of `disconnect` or without a `target`, since the last
   * `disconnect`.
   */
  readonly refusedConnections: number;
  /** Ends all connections and refuses new ones until `reconnect`. */
  disconnect(): void;
  reconnect(): void;
  close(): Promise<void>;
}

/** Opens a proxy on a free port of the loopback address. */
export async function openTcpProxy(): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  let isDisconnected = false;
  let refusedConnections = 0;
  const track = (socket: Socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => socket.destroy());
  };
  const server = createServer((incoming) => {
    track(incoming);
    if (isDisconnected || proxy.target === undefined) {
      refusedConnections++;
      return void incoming.resetAndDestroy();
    }
    const outgoing = connect(proxy.target, '127.0.0.1');
    track(outgoing);
    incoming.pipe(outgoing).pipe(incoming);
    incoming.on('close', () => outgoing.destroy());
    outgoing.on('close', () => incoming.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const end = () => {
    for (const socket of sockets) socket.destroy();
  };
  const proxy: TcpProxy = {
    port: (server.address() as AddressInfo).port,
    target: undefined,
    get refusedConnections() {
      return refusedConnections;
    },
    disconnect() {
      isDisconnected = true;
      refusedConnections = 0;
      end();
    },
    reconnect() {
      isDisconnected = false;
    },
    close() {
      end();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
  return proxy;
}
