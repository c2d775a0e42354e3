import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';

/**
 * Address of the client. With `forwarded` it is the first one in `X-Forwarded-For`, which the reverse proxy must
 * set; without (or when that is no address) the peer of the connection. Clients on a Unix socket count as local.
 */
export function clientAddress(request: IncomingMessage, forwarded: boolean): string {
  if (forwarded) {
    const header = request.headers['x-forwarded-for'];
    if (typeof header === 'string') {
      const first = header.split(',', 1)[0]!.trim();
      if (isIP(first) !== 0) return first;
    }
  }
  const peer = request.socket.remoteAddress ?? '127.0.0.1';
  return peer.startsWith('::ffff:') ? peer.slice('::ffff:'.length) : peer;
}
