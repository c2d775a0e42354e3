import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * The first port that is tried. All tried ports are below the range that the operating system uses for outgoing
 * connections and for servers that listen on port 0. Otherwise a connection or another server could occupy the port
 * before the server listens on it, or while the server is down.
 */
const firstPort = 20_000;

/** The port after the last one that is tried. */
const endPort = 32_000;

/** Returns a free TCP port of the loopback address. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(firstPort, endPort);
    const server = createServer().listen(port, '127.0.0.1');
    const isFree = await once(server, 'listening').then(
      () => true,
      () => false,
    );
    if (!isFree) continue;
    server.close();
    await once(server, 'close');
    return port;
  }
}
