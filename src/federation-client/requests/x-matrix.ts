/** The parameters of a signature on a request, as they travel in the `Authorization` header. */
export interface XMatrix {
  readonly origin: string;
  /** Older servers leave it out. */
  readonly destination: string | undefined;
  readonly key: string;
  readonly signature: string;
}

/** Writes the header, so that older servers understand it, too. None of the values holds a quote or a backslash. */
export function formatXMatrix({ origin, destination, key, signature }: XMatrix): string {
  const to = destination === undefined ? '' : `destination="${destination}",`;
  return `X-Matrix origin="${origin}",${to}key="${key}",sig="${signature}"`;
}

const scheme = /^x-matrix +/i;

/** One parameter, quoted or not, and the comma behind it. What is not quoted may hold more than tokens do. */
const parameter =
  /[ \t]*([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^\s",]*))[ \t]*(?:,|$)/sy;

/**
 * Reads the header. Names are case-insensitive, the order does not matter, unknown parameters are ignored.
 * Source: server-server API, "Request Authentication"; RFC 9110, section 11.4.
 * @returns `undefined` when it is of another scheme, can not be read, misses a parameter or has one twice
 */
export function parseXMatrix(header: string): XMatrix | undefined {
  const start = scheme.exec(header)?.[0].length;
  if (start === undefined) return undefined;
  const found = new Map<string, string>();
  for (parameter.lastIndex = start; parameter.lastIndex < header.length; ) {
    const match = parameter.exec(header);
    if (match === null) return undefined;
    const [, name = '', quoted, plain = ''] = match;
    const known = name.toLowerCase();
    if (found.has(known)) return undefined;
    found.set(known, quoted === undefined ? plain : quoted.replace(/\\(.)/gs, '$1'));
  }
  const [origin, key] = [found.get('origin'), found.get('key')];
  const signature = found.get('sig') ?? found.get('signature');
  if (!origin || !key || !signature) return undefined;
  return { origin, destination: found.get('destination'), key, signature };
}
