import type { TlsSettings } from './tls-settings.ts';

/** The destination of a request, in separate parts: the host of a federation server may differ from its name. */
export interface Target {
  /** Absent for plain HTTP. */
  readonly tls: TlsSettings | undefined;
  /** Host name or address (IPv6 without brackets) to connect to. */
  readonly host: string;
  readonly port: number;
  /**
   * The name that the certificate must be valid for, sent as SNI; absent when it must be valid for the
   * address `host`.
   */
  readonly tlsName: string | undefined;
  /** The `Host` header. */
  readonly authority: string;
  /** Path and query, exactly as they are sent. */
  readonly path: string;
}

/** Returns the target of a URL. @param tls for `https` URLs */
export function targetOf(url: URL, tls: TlsSettings): Target {
  const secure = url.protocol === 'https:';
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const isAddress = host.includes(':') || /^[\d.]+$/.test(host);
  return {
    tls: secure ? tls : undefined,
    host,
    port: url.port === '' ? (secure ? 443 : 80) : Number(url.port),
    tlsName: secure && !isAddress ? host : undefined,
    authority: url.host,
    path: `${url.pathname}${url.search}`,
  };
}

/** Returns host and port in the notation of URLs. */
export const hostAndPort = ({ host, port }: Pick<Target, 'host' | 'port'>) =>
  `${host.includes(':') ? `[${host}]` : host}:${port}`;
