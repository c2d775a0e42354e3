import { parseServerName, type ServerNameParts } from '../../protocol/index.ts';

/** Where requests for a server go, and as whom it must prove itself there. */
export interface Endpoint {
  /** Host name or address to connect to. */
  readonly host: string;
  readonly port: number;
  /** The host name that the certificate must be for; absent when it must be for the address `host`. */
  readonly tlsName: string | undefined;
  /** The `Host` header. */
  readonly authority: string;
}

/** Where servers listen when nothing says otherwise. */
export const defaultPort = 8448;

/**
 * The place that a server name, delegated or not, gives away by itself: it is an address, or has a port. Otherwise
 * `undefined`. Source: server-server API, "Resolving server names", steps 1, 2, 3.1 and 3.2.
 */
export function explicitEndpoint(
  serverName: string,
  { host, port, kind }: ServerNameParts,
): Endpoint | undefined {
  if (kind !== 'dns') return { host, port: port ?? defaultPort, tlsName: undefined, authority: serverName };
  return port === undefined ? undefined : { host, port, tlsName: host, authority: serverName };
}

/** @throws TypeError when the text is no server name */
export function partsOf(serverName: string): ServerNameParts {
  const parts = parseServerName(serverName);
  if (parts === undefined) throw new TypeError('This is not the name of a server');
  return parts;
}
