import { isIP } from 'node:net';
import { IpRangeSet } from '../../kernel/config/index.ts';
import { type OutboundConfig, privateRanges, type Resolver } from '../../kernel/outbound/index.ts';

/** Whether a push gateway at this host, a name or an address without brackets, may be reached without TLS. */
export type PlainHttpCheck = (host: string) => Promise<boolean>;

type Ranges = Pick<OutboundConfig, 'ip_range_blacklist' | 'ip_range_whitelist'>;

/**
 * Returns a check that allows the hosts of the operator's own network: those that have addresses to which requests may
 * be sent, all of them private or in `ip_range_whitelist`. The specification demands https, which such gateways usually
 * do not have.
 */
export function plainHttpCheck(
  { ip_range_blacklist, ip_range_whitelist }: Ranges,
  resolver: Pick<Resolver, 'addresses'>,
): PlainHttpCheck {
  const opened = new IpRangeSet(ip_range_whitelist);
  const refused = new IpRangeSet(ip_range_blacklist);
  const internal = new IpRangeSet(privateRanges);
  const isReachable = (address: string) => opened.contains(address) || !refused.contains(address);
  const isOwn = (address: string) => opened.contains(address) || internal.contains(address);
  return async (host) => {
    const addresses = isIP(host) === 0 ? await addressesOf(host, resolver) : [host];
    const reachable = addresses.filter(isReachable);
    return reachable.length > 0 && reachable.every(isOwn);
  };
}

/** Returns the addresses of a host; none when the host is unknown. */
async function addressesOf(host: string, resolver: Pick<Resolver, 'addresses'>): Promise<readonly string[]> {
  try {
    return (await resolver.addresses(host)).map(({ address }) => address);
  } catch {
    return [];
  }
}
