import type { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { type Clock, sleep } from '../clock.ts';
import { OutboundError, toOutboundError } from './errors.ts';
import { Proxies, type ProxyOptions } from './proxies.ts';
import type { Resolver } from './resolver.ts';
import type { TlsSettings } from './tls-settings.ts';
import { openTunnel } from './tunnel.ts';

/** Maximum milliseconds until the TLS handshake is complete. */
const timeout = 10_000;

/** Maximum number of addresses of a host whose certificates are read. */
const maxAddresses = 8;

/** The certificate that a server presents. */
export interface ServedCertificate {
  /** Names and addresses that it is valid for, as in `DNS:example.org`. */
  readonly names: readonly string[];
  /** Whether it is valid for the name or address of the endpoint. */
  readonly isForName: boolean;
  /** Milliseconds since the epoch. */
  readonly validFrom: number;
  /** Milliseconds since the epoch. */
  readonly validTo: number;
  /**
   * OpenSSL's code for why the certificate does not lead to a trusted authority; `undefined` when it does, or when only
   * its period of validity is wrong.
   */
  readonly chainProblem: string | undefined;
}

/** The result of the TLS handshake with one address of a server. */
export interface CertificateAnswer {
  /** `undefined` behind a proxy, which resolves the name itself. */
  readonly address: string | undefined;
  readonly result: ServedCertificate | OutboundError;
}

/**
 * A TLS server at a host, which is a name or an IP address. `tlsName` is the name for which its certificate must be
 * valid; when absent, the certificate must be valid for `host`.
 */
export interface TlsEndpoint {
  readonly host: string;
  readonly port: number;
  readonly tlsName: string | undefined;
}

export interface CertificateDeps {
  readonly resolver: Resolver;
  readonly proxies: ProxyOptions;
  readonly tls: TlsSettings;
  readonly clock: Clock;
}

/**
 * Connects to up to eight addresses of an endpoint, or through a proxy, and returns the certificates, valid or not.
 * Sends no request.
 * @throws OutboundError when the host cannot be looked up, mostly `unknown-host`
 */
export async function servedCertificates(
  endpoint: TlsEndpoint,
  deps: CertificateDeps,
): Promise<readonly CertificateAnswer[]> {
  const proxy = new Proxies(deps.proxies).for(true, endpoint.host);
  const addresses = proxy === undefined ? await addressesOf(endpoint.host, deps.resolver) : [undefined];
  return Promise.all(
    addresses.map(async (address) => {
      try {
        const socket = proxy && (await openTunnel(proxy, endpoint, timeout));
        const to = socket ? { socket } : { host: address ?? endpoint.host, port: endpoint.port };
        return { address, result: await handshake(to, endpoint, deps) };
      } catch (error) {
        return { address, result: toOutboundError(error) };
      }
    }),
  );
}

async function addressesOf(host: string, resolver: Resolver): Promise<readonly string[]> {
  if (isIP(host) !== 0) return [host];
  try {
    const found = await resolver.addresses(host);
    return found.slice(0, maxAddresses).map(({ address }) => address);
  } catch (error) {
    throw toOutboundError(error);
  }
}

async function handshake(
  to: ConnectionOptions,
  { host, tlsName }: TlsEndpoint,
  { tls, clock }: CertificateDeps,
): Promise<ServedCertificate> {
  const socket = connect({
    ...to,
    secureContext: tls.context,
    rejectUnauthorized: false,
    // The name is compared below, so that `chainProblem` and `isForName` are independent.
    checkServerIdentity: () => undefined,
    ...(tlsName !== undefined && { servername: tlsName }),
  });
  const ended = new AbortController();
  try {
    await Promise.race([
      new Promise<void>((resolve, reject) => {
        socket.once('secureConnect', resolve);
        socket.once('error', reject);
        socket.once('close', () => reject(new OutboundError('connection', 'the connection was closed')));
      }),
      sleep(clock, timeout, ended.signal).then(() => {
        if (!ended.signal.aborted) throw new OutboundError('timeout', 'no answer within 10 seconds');
      }),
    ]);
    return certificateOf(socket, tlsName ?? host);
  } finally {
    ended.abort();
    socket.on('error', () => undefined).destroy();
  }
}

/** Codes of certificates whose only fault is their period of validity, which `validFrom` and `validTo` show. */
const timeCodes = new Set(['CERT_HAS_EXPIRED', 'CERT_NOT_YET_VALID']);

function certificateOf(socket: TLSSocket, name: string): ServedCertificate {
  const certificate = socket.getPeerX509Certificate();
  if (certificate === undefined) throw new OutboundError('tls', 'the server presents no certificate');
  const code = socket.authorizationError as unknown;
  const problem = typeof code === 'string' ? code : (code as NodeJS.ErrnoException | null)?.code;
  return {
    names: certificate.subjectAltName?.split(', ') ?? [],
    isForName: isCertificateFor(certificate, name),
    validFrom: certificate.validFromDate.getTime(),
    validTo: certificate.validToDate.getTime(),
    chainProblem: problem === undefined || timeCodes.has(problem) ? undefined : problem,
  };
}

/**
 * Returns whether a certificate names a host.
 * @param name a DNS name or an IP address, also an IPv6 address in brackets
 */
export function isCertificateFor(certificate: X509Certificate, name: string): boolean {
  const address = name.replace(/^\[(.*)\]$/, '$1');
  const match = isIP(address) === 0 ? certificate.checkHost(name) : certificate.checkIP(address);
  return match !== undefined;
}
