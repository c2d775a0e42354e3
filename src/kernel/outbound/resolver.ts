import { Resolver as DnsResolver, lookup } from 'node:dns/promises';
import { systemClock } from '../clock.ts';
import { type HostAddress, LookupQueue } from './lookup-queue.ts';

export type { HostAddress };

/** One target of a service. Source: RFC 2782. */
export interface SrvRecord {
  readonly name: string;
  readonly port: number;
  /** Lower priorities are tried first. */
  readonly priority: number;
  /** Share of the requests among targets of the same priority. */
  readonly weight: number;
}

/** Resolves names for the whole program; tests pass a fake one. */
export interface Resolver {
  /** Returns all addresses of a host. @throws Error with a code, for example `ENOTFOUND` */
  addresses(host: string): Promise<readonly HostAddress[]>;
  /**
   * Returns the targets of a service; none when there is no such record.
   * @param name for example `_matrix-fed._tcp.example.org`
   * @throws Error when the look-up fails
   */
  services(name: string): Promise<readonly SrvRecord[]>;
}

/** Error codes for a name that does not exist or has no record of that type. */
const noRecord = new Set(['ENOTFOUND', 'ENODATA', 'NXDOMAIN', 'EBADNAME']);

/** Milliseconds for one attempt of a service look-up. */
const srvTimeout = 5_000;

/** Number of attempts of a service look-up. */
const tries = 2;

const hostLookups = new LookupQueue(
  async (host) => (await lookup(host, { all: true })) as HostAddress[],
  systemClock,
);

/** The resolver of the machine: hosts through the operating system, services through its name servers. */
export const systemResolver: Resolver = {
  addresses: (host) => hostLookups.addresses(host),
  async services(name) {
    try {
      return await new DnsResolver({ timeout: srvTimeout, tries }).resolveSrv(name);
    } catch (error) {
      if (noRecord.has(String((error as NodeJS.ErrnoException).code))) return [];
      throw error;
    }
  },
};
