import { IpRangeSet } from '../config/index.ts';

/** Nobody's address: on most systems connecting to it reaches this machine. */
const nowhere = new IpRangeSet(['0.0.0.0/32', '::/128']);

export interface AddressPolicyOptions {
  /** Ranges that are refused. */
  readonly refused: readonly string[];
  /** Ranges that are allowed even if `refused` names them. */
  readonly allowed: readonly string[];
}

/** Which addresses requests may go to. It is asked about the address actually connected to. */
export class AddressPolicy {
  readonly #refused: IpRangeSet;
  readonly #allowed: IpRangeSet;

  constructor({ refused, allowed }: AddressPolicyOptions) {
    this.#refused = new IpRangeSet(refused);
    this.#allowed = new IpRangeSet(allowed);
  }

  /**
   * Whether an address may be connected to. IPv4 addresses within IPv6 ones (mapped, or behind a translator or a
   * tunnel) are looked at as what they are. `0.0.0.0` and `::` never may.
   */
  allows(address: string): boolean {
    const forms = [address, ...embeddedAddresses(address)];
    if (forms.some((form) => nowhere.contains(form))) return false;
    if (forms.some((form) => this.#allowed.contains(form))) return true;
    return !forms.some((form) => this.#refused.contains(form));
  }
}

const embedding: readonly { range: IpRangeSet; firstGroup: number }[] = [
  // RFC 6052: the translators' well-known prefix.
  { range: new IpRangeSet(['64:ff9b::/96']), firstGroup: 6 },
  // RFC 3056: 6to4.
  { range: new IpRangeSet(['2002::/16']), firstGroup: 1 },
  // RFC 4291: IPv4-compatible addresses, no longer in use.
  { range: new IpRangeSet(['::/96']), firstGroup: 6 },
];

/** The IPv4 addresses that packets to an IPv6 address end up at. */
function embeddedAddresses(address: string): string[] {
  return embedding.flatMap(({ range, firstGroup }) => {
    if (!address.includes(':') || !range.contains(address)) return [];
    const [high = 0, low = 0] = groupsOf(address).slice(firstGroup, firstGroup + 2);
    return [`${high >> 8}.${high & 0xff}.${low >> 8}.${low & 0xff}`];
  });
}

/** The eight 16-bit groups of a valid IPv6 address. */
function groupsOf(address: string): number[] {
  const { hostname } = new URL(`http://[${address.replace(/%.*$/, '')}]/`);
  const [head = '', tail] = hostname.slice(1, -1).split('::');
  const numbers = (text: string) =>
    text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16));
  const [before, after] = [numbers(head), numbers(tail ?? '')];
  return [...before, ...Array<number>(8 - before.length - after.length).fill(0), ...after];
}
