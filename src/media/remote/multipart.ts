import { isJsonObject, parseJson } from '../../protocol/index.ts';
import { ByteSource } from './byte-source.ts';

/** A multipart response that violates the specification. */
export class MalformedMultipart extends Error {
  override readonly name = 'MalformedMultipart';
}

/** Maximum bytes of a line. */
const maxLineBytes = 8_192;

/** Maximum number of header lines. */
const maxLines = 32;

/** Maximum bytes of the first part, which contains metadata. */
const maxMetadataBytes = 65_536;

/** Maximum characters of the `Content-Type` header. */
const maxTypeLength = 1_000;

const mediaType =
  /^multipart\/mixed[ \t]*;(?:[^"]*;)?[ \t]*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))[ \t]*(?:;|$)/i;
const boundaryCharacters = /^[A-Za-z0-9'()+_,\-./:=? ]*[A-Za-z0-9'()+_,\-./:=?]$/;
const headerName = /^[!#$%&'*+\-.^_`|~A-Za-z0-9]+$/;

/** The part with the media, or with the URL of the media. */
export interface MediaPart {
  /** Header values by lower-case name; the first value where a name is repeated. */
  readonly headers: ReadonlyMap<string, string>;
  /** The media; reading it throws MalformedMultipart when the response ends incorrectly. */
  readonly content: AsyncIterable<Uint8Array>;
}

/**
 * Reads the response of a remote server to a media request: exactly two parts, first a JSON object, then the
 * media. Tolerates only a line break before the first part, and padding after a boundary.
 * Source: server-server API, `GET /_matrix/federation/v1/media/download/{mediaId}`; RFC 2046, section 5.1.
 * @throws MalformedMultipart
 */
export async function readMediaPart(
  contentType: string | undefined,
  body: AsyncIterable<Uint8Array>,
): Promise<MediaPart> {
  const boundary = boundaryOf(contentType);
  const source = new ByteSource(body);
  await source.skip('\r\n');
  if (!(await source.skip(`--${boundary}`)))
    throw new MalformedMultipart('The body does not begin with a boundary');
  await readEndOfBoundary(source);
  const delimiter = Buffer.from(`\r\n--${boundary}`, 'latin1');
  await readMetadata(source, delimiter);
  await readEndOfBoundary(source);
  const headers = await readHeaders(source);
  return { headers, content: mediaOf(source, delimiter) };
}

/** Returns the boundary in a content type. @throws MalformedMultipart for another type */
export function boundaryOf(contentType: string | undefined): string {
  const [, quoted, token] = mediaType.exec(contentType?.slice(0, maxTypeLength) ?? '') ?? [];
  const boundary = quoted ?? token;
  if (boundary === undefined || !boundaryCharacters.test(boundary)) {
    throw new MalformedMultipart('The content type is not multipart/mixed with a boundary');
  }
  return boundary;
}

async function readEndOfBoundary(source: ByteSource): Promise<void> {
  const padding = await source.line(maxLineBytes);
  if (padding === undefined || !/^[ \t]*$/.test(padding)) {
    throw new MalformedMultipart('A part is missing after a boundary, or the boundary does not end its line');
  }
}

async function readHeaders(source: ByteSource): Promise<ReadonlyMap<string, string>> {
  const headers = new Map<string, string>();
  for (let count = 0; count <= maxLines; count++) {
    const line = await source.line(maxLineBytes);
    if (line === '') return headers;
    if (line === undefined)
      throw new MalformedMultipart('A header line of a part is too long or does not end');
    const colon = line.indexOf(':');
    const name = line.slice(0, Math.max(0, colon));
    if (!headerName.test(name)) throw new MalformedMultipart('A header line of a part has no valid name');
    const key = name.toLowerCase();
    if (!headers.has(key)) headers.set(key, line.slice(colon + 1).trim());
  }
  throw new MalformedMultipart('There are too many headers');
}

async function readMetadata(source: ByteSource, delimiter: Buffer): Promise<void> {
  const headers = await readHeaders(source);
  const type = (headers.get('content-type') ?? '').split(';', 1)[0]!.trim().toLowerCase();
  if (type !== 'application/json')
    throw new MalformedMultipart('The first part does not have the content type application/json');
  const text = await collect(source.until(delimiter));
  try {
    if (isJsonObject(parseJson(text, { maxDepth: 100 }))) return;
  } catch (cause) {
    throw new MalformedMultipart('The first part is not JSON', { cause });
  }
  throw new MalformedMultipart('The first part is not a JSON object');
}

async function collect(pieces: AsyncGenerator<Buffer, boolean>): Promise<Buffer> {
  const all: Buffer[] = [];
  let length = 0;
  for (;;) {
    const { done, value } = await pieces.next();
    if (done && value) return Buffer.concat(all, length);
    if (done) throw new MalformedMultipart('The body ends too early');
    length += value.length;
    if (length > maxMetadataBytes) throw new MalformedMultipart('The first part is too large');
    all.push(value);
  }
}

async function* mediaOf(source: ByteSource, delimiter: Buffer): AsyncGenerator<Buffer> {
  if (!(yield* source.until(delimiter))) throw new MalformedMultipart('The body ends too early');
  if (!(await source.skip('--'))) throw new MalformedMultipart('There are more than two parts');
}
