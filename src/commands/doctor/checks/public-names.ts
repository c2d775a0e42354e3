import { isIP } from 'node:net';
import { Discovery, type Endpoint } from '../../../federation-client/index.ts';
import { CacheRegistry } from '../../../kernel/caches/index.ts';
import { IpRangeSet } from '../../../kernel/config/index.ts';
import { OutboundError, privateRanges } from '../../../kernel/outbound/index.ts';
import { isServerName, parseServerName } from '../../../protocol/index.ts';
import type { Examination } from '../examination.ts';
import { error, type Finding, note, ok, warning } from '../finding.ts';
import { describeAnswer, fixOf, isUnanswered, jsonOf, requestUrl } from './public-requests.ts';

/** The endpoints that other servers find for this server, with findings about them. */
export interface FederationNames {
  readonly findings: readonly Finding[];
  readonly endpoints: readonly Endpoint[];
}

/** Whether the server name has no meaning on other machines. */
export function isLocalName(serverName: string): boolean {
  const host = parseServerName(serverName)?.host ?? serverName;
  return host === 'localhost' || host.endsWith('.localhost') || host === '::1' || host.startsWith('127.');
}

/**
 * Resolves the server name as other servers do.
 * Source: server-server API, "Resolving server names".
 * @param runs whether the server answers at its own listener. If not, it cannot serve `/.well-known`, which is no error
 */
export async function checkFederationNames(
  examination: Examination,
  runs: boolean,
): Promise<FederationNames> {
  const { server_name: serverName } = examination.configuration.server;
  const { findings, delegate } = await delegation(serverName, examination, runs);
  const { clock, resolver, randomness, configuration } = examination;
  const caches = new CacheRegistry(clock, configuration.caches);
  try {
    const wellKnown = { delegateOf: async () => delegate };
    const discovery = new Discovery({ caches, wellKnown, resolver, clock, randomness });
    const endpoints = await discovery.endpointsOf(serverName);
    const places = endpoints.map(({ host, port }) => `${host}:${port}`).join(', ');
    return {
      endpoints,
      findings: [
        ...findings,
        ok('federation-address', `Other servers find ${serverName} at ${places}.`),
        ...(await Promise.all(endpoints.map(({ host }) => checkAddresses(host, examination)))).flat(),
      ],
    };
  } catch (cause) {
    if (!(cause instanceof OutboundError)) throw cause;
    const text = `The SRV record says that ${serverName} offers no federation (${cause.message}).`;
    const fix = `delete the record _matrix-fed._tcp.${serverName} or _matrix._tcp.${serverName}, or let it name this server`;
    return { endpoints: [], findings: [...findings, error('dns-srv', text, fix)] };
  } finally {
    caches.close();
  }
}

/** Reads `/.well-known/matrix/server` of the server name. */
async function delegation(
  serverName: string,
  examination: Examination,
  runs: boolean,
): Promise<{ readonly findings: readonly Finding[]; readonly delegate?: string }> {
  const parts = parseServerName(serverName);
  if (parts === undefined || parts.kind !== 'dns' || parts.port !== undefined) return { findings: [] };
  const url = new URL(`https://${parts.host}/.well-known/matrix/server`);
  const answer = await requestUrl(examination, url);
  const delegate = jsonOf(answer)?.['m.server'];
  const isFound = !(answer instanceof OutboundError) && answer.status === 200;
  if (isFound && isServerName(delegate)) {
    return { delegate, findings: [ok('well-known-server', `${url} leads to ${delegate}.`)] };
  }
  const { serve_server_wellknown: serves } = examination.configuration.server;
  if (isFound) {
    const text = `${url} contains no valid m.server, so other servers ignore it.`;
    return { findings: [error('well-known-server', text, `{"m.server": "${parts.host}:443"}`)] };
  }
  if (serves && !runs) {
    const text = `${url} answers ${describeAnswer(answer)} while the server does not run. It is assumed to lead to port 443.`;
    return { delegate: `${parts.host}:443`, findings: [note('well-known-server', text)] };
  }
  if (serves) {
    const text = `serve_server_wellknown is on, but ${url} answers ${describeAnswer(answer)}: other servers are not led to port 443.`;
    return { findings: [error('well-known-server', text, fixOf(answer, 443, '/.well-known/matrix'))] };
  }
  const text = `${url} answers ${describeAnswer(answer)}, so other servers use SRV records or port 8448 of ${parts.host}.`;
  const fix =
    'if port 8448 is to stay closed: serve_server_wellknown: true, or a file at that URL on the web server';
  return { findings: [note('well-known-server', text, fix)] };
}

/** Checks that a host name has addresses, and that they are not private, so that other machines can reach them. */
export async function checkAddresses(host: string, { resolver }: Examination): Promise<Finding[]> {
  const isAddress = isIP(host) !== 0;
  let addresses: readonly string[] = [host];
  if (!isAddress) {
    try {
      addresses = (await resolver.addresses(host)).map(({ address }) => address);
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      if (isUnanswered(cause)) {
        const text = `No DNS server has answered for ${host} (${reason}), so its addresses are not known.`;
        const fix = `getent hosts matrix.org: if that finds nothing either, let /etc/resolv.conf name a DNS server that answers; else the DNS servers of ${host} fail`;
        return [error('dns-servers', text, fix)];
      }
      return [
        error('dns', `${host} has no address: ${reason}.`, `add A and AAAA records for ${host} to the DNS`),
      ];
    }
  }
  const ranges = new IpRangeSet(privateRanges);
  const hidden = addresses.filter((address) => ranges.contains(address));
  if (hidden.length > 0) {
    return [
      warning(
        'dns-private',
        `${host} resolves to ${hidden.join(', ')} on this machine: only this machine or network can reach that. Other servers may see another address.`,
        `compare with the public DNS: dig @9.9.9.9 ${host} A ${host} AAAA; and look into /etc/hosts`,
      ),
    ];
  }
  return isAddress ? [] : [ok('dns', `${host} has the addresses ${addresses.join(', ')}.`)];
}
