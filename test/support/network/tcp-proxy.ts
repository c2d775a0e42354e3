import type { AddressInfo } from 'node:net';
import { connect, createServer, type Socket } from 'node:net';

/** An address that stays the same while the server behind it is started anew, and whose cable can be pulled. */
export interface TcpProxy {
  readonly port: number;
  /** Where connections are passed on to; `undefined`: to nobody. */
  target: number | undefined;
  /** Ends all connections and takes no more until `mend`. */
  cut(): void;
  mend(): void;
  close(): Promise<void>;
}

/** Listens on a free port of the loopback address and passes on what comes. */
export async function openTcpProxy(): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  let isCut = false;
  const track = (socket: Socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => socket.destroy());
  };
  const server = createServer((incoming) => {
    track(incoming);
    if (isCut || front.target === undefined) return void incoming.resetAndDestroy();
    const outgoing = connect(front.target, '127.0.0.1');
    track(outgoing);
    incoming.pipe(outgoing).pipe(incoming);
    incoming.on('close', () => outgoing.destroy());
    outgoing.on('close', () => incoming.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const end = () => {
    for (const socket of sockets) socket.destroy();
  };
  const front: TcpProxy = {
    port: (server.address() as AddressInfo).port,
    target: undefined,
    cut() {
      isCut = true;
      end();
    },
    mend() {
      isCut = false;
    },
    close() {
      end();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
  return front;
}
