import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Socket } from 'node:net';
import { OutboundError } from './errors.ts';
import { proxyAuthorization } from './proxies.ts';
import { hostAndPort, type Target } from './target.ts';

/**
 * Opens a connection to the target through a proxy. The proxy resolves the name.
 * Source: RFC 9110, section 9.3.6.
 * @param timeout milliseconds
 * @throws OutboundError `proxy`, `timeout`
 */
export function openTunnel(
  proxy: URL,
  target: Pick<Target, 'host' | 'port'>,
  timeout: number,
): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const path = hostAndPort(target);
  const send = proxy.protocol === 'https:' ? httpsRequest : httpRequest;
  const request = send({
    method: 'CONNECT',
    host: proxy.hostname.replace(/^\[|\]$/g, ''),
    port: proxy.port === '' ? (proxy.protocol === 'https:' ? 443 : 80) : Number(proxy.port),
    path,
    headers: { host: path, ...proxyAuthorization(proxy) },
    agent: false,
    timeout,
  });
  request.once('connect', ({ statusCode = 0 }, socket) => {
    if (statusCode >= 200 && statusCode < 300) return resolve(socket as Socket);
    socket.destroy();
    reject(new OutboundError('proxy', `The proxy answered ${statusCode}`));
  });
  request.once('response', (response) => {
    response.destroy();
    reject(new OutboundError('proxy', `The proxy answered ${response.statusCode}`));
  });
  request.once('timeout', () => request.destroy(new OutboundError('timeout', 'The proxy does not respond')));
  request.once('error', (cause) =>
    reject(cause instanceof OutboundError ? cause : new OutboundError('proxy', cause.message, { cause })),
  );
  request.end();
  return promise;
}
