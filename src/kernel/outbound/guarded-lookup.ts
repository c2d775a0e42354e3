import type { LookupFunction } from 'node:net';
import type { AddressPolicy } from './address-policy.ts';
import { OutboundError } from './errors.ts';
import type { Resolver } from './resolver.ts';

/**
 * Returns a `lookup` function for sockets that yields only addresses that the policy allows. The socket
 * connects to the returned addresses without another look-up, so a name cannot resolve differently between
 * check and connection (DNS rebinding).
 */
export function guardedLookup(resolver: Resolver, policy: AddressPolicy): LookupFunction {
  return (host, options, callback) => {
    void allowedAddresses(host, resolver, policy).then(
      (addresses) => {
        if (options.all) return callback(null, [...addresses]);
        const { address, family } = addresses[0]!;
        callback(null, address, family);
      },
      (error: NodeJS.ErrnoException) => callback(error, []),
    );
  };
}

async function allowedAddresses(host: string, resolver: Resolver, policy: AddressPolicy) {
  const addresses = await resolver.addresses(host);
  if (addresses.length === 0) throw new OutboundError('unknown-host', `${host} has no address`);
  const allowed = addresses.filter(({ address }) => policy.allows(address));
  if (allowed.length === 0) throw refusedAddress(host);
  return allowed;
}

/** The message does not contain the address: the user or server that chose the host may read it. */
export const refusedAddress = (host: string) =>
  new OutboundError('refused-address', `Requests to ${host} are not allowed`);
