import { parseServerName, type ServerNameParts } from '../../protocol/index.ts';

/** The address for requests to a server, and the name that its certificate must be valid for. */
export interface Endpoint {
  /** Host name or address to connect to. */
  readonly host: string;
  readonly port: number;
  /** The host name that the certificate must be valid for; absent when it must be valid for the address `host`. */
  readonly tlsName: string | undefined;
  /** The `Host` header. */
  readonly authority: string;
}

/** The port of servers without an explicit port or SRV record. */
export const defaultPort = 8448;

/**
 * Returns the endpoint for a server name that is an IP address or has an explicit port; `undefined` for any other
 * server name. The name may come from a delegation.
 * Source: server-server API, "Resolving server names", steps 1, 2, 3.1 and 3.2.
 */
export function explicitEndpoint(
  serverName: string,
  { host, port, kind }: ServerNameParts,
): Endpoint | undefined {
  if (kind !== 'dns') return { host, port: port ?? defaultPort, tlsName: undefined, authority: serverName };
  return port === undefined ? undefined : { host, port, tlsName: host, authority: serverName };
}

/** @throws TypeError for an invalid server name */
export function partsOf(serverName: string): ServerNameParts {
  const parts = parseServerName(serverName);
  if (parts === undefined) throw new TypeError('Not a valid server name');
  return parts;
}
