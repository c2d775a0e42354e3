import { canonicalString, type SigningKey } from '../../protocol/index.ts';
import { formatXMatrix } from './x-matrix.ts';

/** The parts of a request that its signature covers. */
export interface SignedParts {
  readonly method: string;
  /** Path and query exactly as they are sent. */
  readonly uri: string;
  readonly origin: string;
  readonly destination: string;
  /** The body as canonical JSON; absent without a body. */
  readonly content?: string | undefined;
}

/** Returns the signed canonical JSON, with fields in the order of their names. */
export function signedText({ method, uri, origin, destination, content }: SignedParts): string {
  const fields = Object.entries({ destination, method, origin, uri });
  const texts = fields.map(([name, value]) => `"${name}":${canonicalString(value)}`);
  return `{${[...(content === undefined ? [] : [`"content":${content}`]), ...texts].join(',')}}`;
}

/** Returns the bytes of `signedText` for a body that is given as bytes of canonical JSON. */
export function signedBytes(parts: Omit<SignedParts, 'content'>, content: Buffer): Buffer {
  const otherFields = signedText({ ...parts, content: undefined });
  return Buffer.concat([Buffer.from('{"content":'), content, Buffer.from(`,${otherFields.slice(1)}`)]);
}

/** Returns the `Authorization` header of a request. Source: server-server API, "Request Authentication". */
export function authorize(parts: SignedParts, key: SigningKey): string {
  const { origin, destination } = parts;
  return formatXMatrix({ origin, destination, key: key.keyId, signature: key.sign(signedText(parts)) });
}
