/** The parameters of a request signature in the `Authorization` header. */
export interface XMatrix {
  readonly origin: string;
  /** Older servers omit it. */
  readonly destination: string | undefined;
  readonly key: string;
  readonly signature: string;
}

/** Formats the header in a form that older servers also accept. No value may contain a quote or backslash. */
export function formatXMatrix({ origin, destination, key, signature }: XMatrix): string {
  const to = destination === undefined ? '' : `destination="${destination}",`;
  return `X-Matrix origin="${origin}",${to}key="${key}",sig="${signature}"`;
}

const scheme = /^x-matrix +/i;

/** One parameter with the following comma. A value without quotes may have characters that RFC 9110 does not allow. */
const parameter =
  /[ \t]*([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^\s",]*))[ \t]*(?:,|$)/sy;

/**
 * Parses the header. Names are case-insensitive, in any order; unknown parameters are ignored.
 * Source: server-server API, "Request Authentication"; RFC 9110, section 11.4.
 * @returns `undefined` for another scheme, invalid syntax, and missing or repeated parameters
 */
export function parseXMatrix(header: string): XMatrix | undefined {
  const start = scheme.exec(header)?.[0].length;
  if (start === undefined) return undefined;
  const parameters = new Map<string, string>();
  for (parameter.lastIndex = start; parameter.lastIndex < header.length; ) {
    const match = parameter.exec(header);
    if (match === null) return undefined;
    const [, name = '', quoted, plain = ''] = match;
    const lowerCaseName = name.toLowerCase();
    if (parameters.has(lowerCaseName)) return undefined;
    parameters.set(lowerCaseName, quoted === undefined ? plain : quoted.replace(/\\(.)/gs, '$1'));
  }
  const [origin, key] = [parameters.get('origin'), parameters.get('key')];
  const signature = parameters.get('sig') ?? parameters.get('signature');
  if (!origin || !key || !signature) return undefined;
  return { origin, destination: parameters.get('destination'), key, signature };
}
