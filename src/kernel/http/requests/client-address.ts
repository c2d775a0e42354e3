import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import type { TLSSocket } from 'node:tls';

/**
 * Returns the address of the client or server that sends a request. With `forwarded` it is the first address in
 * `X-Forwarded-For`, which the reverse proxy must set; otherwise, or if that is not an address, it is the peer of the
 * connection. A peer on a Unix socket counts as local.
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

/**
 * Whether the client's own connection uses TLS. With `forwarded`, requests from the reverse proxy have the
 * scheme in `X-Forwarded-Proto`; if a proxy sets `X-Forwarded-For` only, TLS is assumed.
 */
export function isSecure(request: IncomingMessage, forwarded: boolean): boolean {
  if ((request.socket as Partial<TLSSocket>).encrypted === true) return true;
  if (!forwarded) return false;
  const scheme = request.headers['x-forwarded-proto'];
  if (typeof scheme === 'string') return scheme.split(',', 1)[0]!.trim().toLowerCase() === 'https';
  return request.headers['x-forwarded-for'] !== undefined;
}
