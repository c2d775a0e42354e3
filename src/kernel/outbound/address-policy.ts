import { IpRangeSet } from '../config/index.ts';

/** The unspecified addresses: on most systems, connecting to them reaches this machine. */
const unspecified = new IpRangeSet(['0.0.0.0/32', '::/128']);

export interface AddressPolicyOptions {
  /** Ranges to refuse, in CIDR notation. */
  readonly refused: readonly string[];
  /** Ranges to allow even if `refused` contains them. */
  readonly allowed: readonly string[];
}

/**
 * Decides to which addresses requests may be sent. It checks the address of the connection, not the name of the host.
 */
export class AddressPolicy {
  readonly #refused: IpRangeSet;
  readonly #allowed: IpRangeSet;

  constructor({ refused, allowed }: AddressPolicyOptions) {
    this.#refused = new IpRangeSet(refused);
    this.#allowed = new IpRangeSet(allowed);
  }

  /**
   * Whether requests may connect to an address. IPv4 addresses embedded in IPv6 ones (mapped, translated or
   * tunnelled) are checked as well. `0.0.0.0` and `::` are never allowed.
   */
  allows(address: string): boolean {
    const forms = [address, ...embeddedAddresses(address)];
    if (forms.some((form) => unspecified.contains(form))) return false;
    if (forms.some((form) => this.#allowed.contains(form))) return true;
    return !forms.some((form) => this.#refused.contains(form));
  }
}

/**
 * Ranges of IPv6 addresses that contain an IPv4 address, and the index of its first 16-bit group. `IpRangeSet` itself
 * reads IPv4-mapped addresses.
 */
const embeddings: readonly { range: IpRangeSet; firstGroup: number }[] = [
  // RFC 6052: the well-known prefix of IPv4/IPv6 translators.
  { range: new IpRangeSet(['64:ff9b::/96']), firstGroup: 6 },
  // RFC 3056: 6to4.
  { range: new IpRangeSet(['2002::/16']), firstGroup: 1 },
  // RFC 4291: IPv4-compatible addresses (deprecated).
  { range: new IpRangeSet(['::/96']), firstGroup: 6 },
];

/** Returns the IPv4 addresses embedded in an IPv6 address. Packets to the IPv6 address may be delivered to them. */
function embeddedAddresses(address: string): string[] {
  return embeddings.flatMap(({ range, firstGroup }) => {
    if (!address.includes(':') || !range.contains(address)) return [];
    const [high = 0, low = 0] = groupsOf(address).slice(firstGroup, firstGroup + 2);
    return [`${high >> 8}.${high & 0xff}.${low >> 8}.${low & 0xff}`];
  });
}

/** Splits a valid IPv6 address into its eight 16-bit groups. */
function groupsOf(address: string): number[] {
  const { hostname } = new URL(`http://[${address.replace(/%.*$/, '')}]/`);
  const [head = '', tail] = hostname.slice(1, -1).split('::');
  const numbers = (text: string) =>
    text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16));
  const [before, after] = [numbers(head), numbers(tail ?? '')];
  return [...before, ...Array<number>(8 - before.length - after.length).fill(0), ...after];
}
