import { isIPv6 } from 'node:net';
import { formatIpRange, parseIpRange } from '../config/index.ts';

/**
 * Returns the key under which limits and bounds count a client address. For an IPv6 address, the key is the first 64
 * bits, because a client can choose the last 64 bits. An IPv4-mapped address (`::ffff:192.0.2.1`) counts as its IPv4
 * address. Other texts, for instance IPv4 addresses and user ids, are returned unchanged.
 */
export function addressKey(text: string): string {
  if (!mayBeIPv6.test(text) || !isIPv6(text)) return text;
  const address = text.replace(/%.*$/, '');
  const { address: number } = parseIpRange(address)!;
  if (number >> 32n === 0xffffn) {
    return formatIpRange({ family: 'ipv4', address: number & 0xffff_ffffn, prefix: 32 }).replace(/\/32$/, '');
  }
  return formatIpRange(parseIpRange(`${address}/64`)!);
}

/** A quick check: only texts that pass it need the longer check. Most keys are user ids and do not pass it. */
const mayBeIPv6 = /^[0-9a-f]{0,4}:/i;
