import { fitsBytes } from './length.ts';

/**
 * The name of a homeserver: a host name, an IPv4 address or an IPv6 address in brackets, optionally with a
 * port.
 */
export type ServerName = string & { readonly __brand: 'ServerName' };

export interface ServerNameParts {
  /** Without the brackets of an IPv6 address. */
  readonly host: string;
  readonly port: number | undefined;
  readonly kind: 'dns' | 'ipv4' | 'ipv6';
}

const dnsName = /^[0-9A-Za-z.-]{1,255}$/;
const ipv4 = /^\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}$/;
const digits = /^\d{1,5}$/;

/**
 * Splits a server name into host and port; `undefined` if it is malformed. Case-sensitive, and nothing is
 * normalised.
 * Source: appendices, "Server Name".
 */
export function parseServerName(text: string): ServerNameParts | undefined {
  if (!fitsBytes(text)) return undefined;
  const end = hostEnd(text);
  const port = end === text.length ? undefined : parsePort(text, end);
  if (port === null) return undefined;
  const host = text.slice(0, end);
  if (host.startsWith('[')) {
    const address = host.slice(1, -1);
    return host.endsWith(']') && isIpv6(address) ? { host: address, port, kind: 'ipv6' } : undefined;
  }
  if (!dnsName.test(host)) return undefined;
  return { host, port, kind: isIpv4(host) ? 'ipv4' : 'dns' };
}

/** Whether text is a server name. */
export function isServerName(text: unknown): text is ServerName {
  return typeof text === 'string' && parseServerName(text) !== undefined;
}

/** Returns where the host ends: after the closing bracket, at the colon, or at the end of the text. */
function hostEnd(text: string): number {
  const end = text.startsWith('[') ? text.indexOf(']') + 1 : text.indexOf(':');
  return end > 0 ? end : text.length;
}

/** Returns `null` if the text after the host is not a port. */
function parsePort(text: string, hostEnd: number): number | null {
  const port = text.slice(hostEnd + 1);
  if (text[hostEnd] !== ':' || !digits.test(port)) return null;
  return Number(port) <= 65535 ? Number(port) : null;
}

/** Whether text is four decimal numbers from 0 to 255. */
export function isIpv4(text: string): boolean {
  return ipv4.test(text) && text.split('.').every((part) => Number(part) <= 255);
}

const group = /^[0-9A-Fa-f]{1,4}$/;

/** Whether text is an IPv6 address as in RFC 3513, section 2.2, without a zone. */
export function isIpv6(text: string): boolean {
  if (text.length < 2 || text.length > 45) return false;
  const halves = text.split('::');
  if (halves.length > 2) return false;
  const groups = halves.map((half, index) => countGroups(half, index === halves.length - 1));
  if (groups.includes(-1)) return false;
  const total = groups.reduce((sum, count) => sum + count, 0);
  return halves.length === 2 ? total <= 7 : total === 8;
}

/**
 * Returns the number of 16-bit groups in a part without `::`, or -1 if one is malformed. The last part may
 * end in an IPv4 address.
 */
function countGroups(part: string, last: boolean): number {
  if (part === '') return 0;
  const groups = part.split(':');
  const tail = groups.at(-1)!;
  const embedded = last && isIpv4(tail);
  if (embedded) groups.pop();
  return groups.every((text) => group.test(text)) ? groups.length + (embedded ? 2 : 0) : -1;
}
