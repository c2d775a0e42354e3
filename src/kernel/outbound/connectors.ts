import { isIP } from 'node:net';
import { buildConnector } from 'undici';
import type { AddressPolicy } from './address-policy.ts';
import { toOutboundError } from './errors.ts';
import { guardedLookup, refusedAddress } from './guarded-lookup.ts';
import type { Resolver } from './resolver.ts';
import type { Target } from './target.ts';
import { openTunnel } from './tunnel.ts';

type Connector = ReturnType<typeof buildConnector>;
type Endpoint = Pick<Target, 'host' | 'port' | 'tls' | 'tlsName'>;

/** Maximum milliseconds until a connection is established, TLS included. */
const connectTimeout = 10_000;

/** Milliseconds for one of several addresses of a host before the next one is tried. */
const autoSelectFamilyAttemptTimeout = 1_000;

/** Returns a connector that connects to the target itself, at an address that the policy allows. */
export function directConnector(
  target: Endpoint,
  resolver: Resolver,
  policy: AddressPolicy,
  http2 = false,
): Connector {
  const protocol = http2 ? { allowH2: true, preferH2: true, useH2c: target.tls === undefined } : {};
  const connect = buildConnector({
    ...optionsOf(target),
    ...protocol,
    lookup: guardedLookup(resolver, policy),
  });
  return (_options, callback) => {
    if (isIP(target.host) !== 0 && !policy.allows(target.host)) callback(refusedAddress(target.host), null);
    else connect(endpointOf(target), callback);
  };
}

/**
 * Returns a connector that connects to the target through a proxy. The proxy decides which addresses are
 * allowed.
 */
export function tunnelConnector(target: Endpoint, proxy: URL): Connector {
  const connect = buildConnector(optionsOf(target));
  return (_options, callback) => {
    openTunnel(proxy, target, connectTimeout).then(
      (httpSocket) => connect({ ...endpointOf(target), httpSocket }, callback),
      (error: unknown) => callback(toOutboundError(error), null),
    );
  };
}

/**
 * Returns the options of a connector for HTTP/1.1 alone, since requests to one server are few at a time and a second
 * protocol would double the attack surface. `directConnector` replaces it by HTTP/2 where an operator has chosen that
 * for a service.
 */
function optionsOf({ tls }: Endpoint) {
  return {
    allowH2: false,
    timeout: connectTimeout,
    autoSelectFamilyAttemptTimeout,
    ...(tls && { secureContext: tls.context, rejectUnauthorized: tls.verify }),
  };
}

function endpointOf({ host, port, tls, tlsName }: Endpoint) {
  return {
    hostname: host,
    protocol: tls ? 'https:' : 'http:',
    port: String(port),
    ...(tlsName !== undefined && { servername: tlsName }),
  };
}
