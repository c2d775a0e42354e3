import { BlockList, isIPv4, isIPv6 } from 'node:net';

/** All addresses that share the first `prefix` bits of `address`. */
export interface IpRange {
  readonly family: 'ipv4' | 'ipv6';
  readonly address: bigint;
  readonly prefix: number;
}

const bits = { ipv4: 32, ipv6: 128 } as const;

/**
 * Parses `10.0.0.0/8`, `fc00::/7`, or a single address. Bits after the prefix are ignored: `10.0.0.1/8` is
 * `10.0.0.0/8`.
 * @returns undefined for other forms: prefixes that are too long, leading zeros, zone ids
 */
export function parseIpRange(text: string): IpRange | undefined {
  const [address = '', prefixText, ...rest] = text.split('/');
  const family = isIPv4(address) ? 'ipv4' : isIPv6(address) && !address.includes('%') ? 'ipv6' : undefined;
  if (family === undefined || rest.length > 0) return undefined;
  if (prefixText !== undefined && !/^(0|[1-9][0-9]{0,2})$/.test(prefixText)) return undefined;
  const prefix = prefixText === undefined ? bits[family] : Number(prefixText);
  if (prefix > bits[family]) return undefined;
  const number = family === 'ipv4' ? ipv4Number(address) : ipv6Number(address);
  const hostBits = BigInt(bits[family] - prefix);
  return { family, address: (number >> hostBits) << hostBits, prefix };
}

/** Formats a range in canonical form, with the shortest notation of an IPv6 address (RFC 5952). */
export function formatIpRange({ family, address, prefix }: IpRange): string {
  return `${family === 'ipv4' ? ipv4Text(address) : ipv6Text(address)}/${prefix}`;
}

/** A set of address ranges. IPv4-mapped IPv6 addresses (`::ffff:10.0.0.1`) match as their IPv4 address. */
export class IpRangeSet {
  readonly #list = new BlockList();

  /** @throws RangeError for a text that is not a range */
  constructor(ranges: readonly string[]) {
    for (const text of ranges) {
      const range = parseIpRange(text);
      if (range === undefined) throw new RangeError('not an IP range');
      const address = range.family === 'ipv4' ? ipv4Text(range.address) : ipv6Text(range.address);
      this.#list.addSubnet(address, range.prefix, range.family);
    }
  }

  /** Whether an address is in one of the ranges. False for a text that is not an address. */
  contains(address: string): boolean {
    if (isIPv4(address)) return this.#list.check(address, 'ipv4');
    if (!isIPv6(address)) return false;
    const number = ipv6Number(address.replace(/%.*$/, ''));
    const mapped = number >> 32n === 0xffffn;
    return mapped
      ? this.#list.check(ipv4Text(number & 0xffffffffn), 'ipv4')
      : this.#list.check(ipv6Text(number), 'ipv6');
  }
}

function ipv4Number(text: string): bigint {
  return text.split('.').reduce((number, octet) => (number << 8n) | BigInt(octet), 0n);
}

function ipv4Text(number: bigint): string {
  return [24n, 16n, 8n, 0n].map((shift) => (number >> shift) & 0xffn).join('.');
}

function ipv6Number(text: string): bigint {
  const dotted = /[^:]*\.[^:]*$/.exec(text)?.[0];
  const low = dotted === undefined ? 0n : ipv4Number(dotted);
  const hexadecimal =
    dotted === undefined
      ? text
      : text.slice(0, -dotted.length) +
        [low >> 16n, low & 0xffffn].map((group) => group.toString(16)).join(':');
  const [head = '', tail] = hexadecimal.split('::');
  const headGroups = head === '' ? [] : head.split(':');
  const tailGroups = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = Array(8 - headGroups.length - tailGroups.length).fill('0');
  const groups = [...headGroups, ...zeros, ...tailGroups];
  return groups.reduce((number, group) => (number << 16n) | BigInt(`0x${group}`), 0n);
}

function ipv6Text(number: bigint): string {
  const groups = Array.from({ length: 8 }, (_, index) =>
    ((number >> BigInt(112 - 16 * index)) & 0xffffn).toString(16),
  );
  const text = groups.join(':');
  const zeros = [...text.matchAll(/(?<![0-9a-f])0(:0)+(?![0-9a-f])/g)].map(([run]) => run);
  const longest = zeros.toSorted((a, b) => b.length - a.length)[0];
  if (longest === undefined) return text;
  const start = text.search(new RegExp(`(?<![0-9a-f])${longest}(?![0-9a-f])`));
  const before = text.slice(0, start).replace(/:$/, '');
  const after = text.slice(start + longest.length).replace(/^:/, '');
  return `${before}::${after}`;
}
