import { Resolver as DnsResolver, lookup } from 'node:dns/promises';

export interface HostAddress {
  readonly address: string;
  readonly family: 4 | 6;
}

/** One target of a service. Source: RFC 2782. */
export interface SrvRecord {
  readonly name: string;
  readonly port: number;
  /** Lower ones are tried first. */
  readonly priority: number;
  /** Among those of one priority, the share of requests that goes there. */
  readonly weight: number;
}

/** The names of hosts and services as the whole program sees them; tests pass one of their own. */
export interface Resolver {
  /** All addresses of a host. @throws an error with the code `ENOTFOUND` or the like */
  addresses(host: string): Promise<readonly HostAddress[]>;
  /** The targets of a service; none when there is no such record. @throws when the answer can not be had */
  services(name: string): Promise<readonly SrvRecord[]>;
}

/** What a resolver says of a name that does not exist, or has no record of that type. */
const noRecord = new Set(['ENOTFOUND', 'ENODATA', 'NXDOMAIN', 'EBADNAME']);

/** Milliseconds and attempts for a look-up of a service. */
const [patience, tries] = [5_000, 2];

/** The machine's resolver: hosts as the operating system has it, services from its name servers. */
export const systemResolver: Resolver = {
  addresses: async (host) => (await lookup(host, { all: true })) as HostAddress[],
  async services(name) {
    try {
      return await new DnsResolver({ timeout: patience, tries }).resolveSrv(name);
    } catch (error) {
      if (noRecord.has(String((error as NodeJS.ErrnoException).code))) return [];
      throw error;
    }
  },
};
