import type { Readable } from 'node:stream';
import { FilePart, OpenFile, Reply, type RouteRequest } from '../../kernel/http/index.ts';
import { type Randomness, randomString } from '../../kernel/randomness.ts';
import { mediaNotFound } from '../media-address.ts';
import type { MediaDescription, MediaFile } from '../media-file.ts';
import type { MediaFiles } from '../providers/media-files.ts';
import { streamOfPieces } from '../stream-of-pieces.ts';
import { isKnown, rangeOf } from './conditional-requests.ts';
import { contentDisposition } from './content-disposition.ts';

/**
 * Headers that prevent content from running code, and let web clients use it.
 * Source: client-server API, "Content repository".
 */
const protection: Readonly<Record<string, string>> = {
  'Content-Security-Policy':
    "sandbox; default-src 'none'; script-src 'none'; plugin-types application/pdf; style-src 'unsafe-inline'; object-src 'self';",
  'Cross-Origin-Resource-Policy': 'cross-origin',
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'X-Robots-Tag': 'noindex, nofollow, noarchive, noimageindex',
};

/** Replaces headers of `protection` for administrators, who inspect files that may be hostile. */
const strictProtection: Readonly<Record<string, string>> = {
  'Content-Security-Policy': "sandbox; default-src 'none'; frame-ancestors 'none'",
  'Cross-Origin-Resource-Policy': 'same-origin',
};

/** The readers of content: all clients with shared caches, one client with its own cache, or administrators without a cache. */
type Audience = 'public' | 'private' | 'administrators';

/** Returns the `Cache-Control` header. Content never changes. */
const cacheFor = (audience: Audience) =>
  audience === 'administrators' ? 'no-store' : `${audience}, max-age=86400, immutable`;

/** An open file or thumbnail. It must be served or closed. */
export interface Content extends MediaDescription {
  /** Size in bytes. */
  readonly size: number;
  /** An open file, or a stream from a storage provider. */
  readonly body: OpenFile | Readable;
}

/** Returns the bytes of content as a stream, which must be read or destroyed. */
export const streamOf = ({ body }: Content): Readable => (body instanceof OpenFile ? body.stream() : body);

/**
 * Opens a file as content.
 * @throws MatrixError M_NOT_FOUND when the file is missing; M_UNKNOWN (503) when a storage provider fails
 */
export async function contentOf(files: MediaFiles, file: MediaFile): Promise<Content> {
  const { area, fileId, contentType, fileName, size } = file;
  const onDisk = await files.disk.open(area, fileId);
  if (onDisk?.size === size) return { contentType, fileName, size, body: onDisk };
  onDisk?.close();
  const restored = await files.restore(file);
  if (restored === undefined) throw mediaNotFound();
  return { contentType, fileName, size, body: restored };
}

export interface ServeContentOptions {
  readonly request: Pick<RouteRequest, 'headers'>;
  /** Identifies the bytes: a strong entity tag with its quotes. */
  readonly tag: string;
  /** Replaces the file name of the upload. */
  readonly fileName?: string | undefined;
  readonly audience: Audience;
}

/**
 * Serves content to a client: all of it, or the requested range of a file on the disk, or 304 if the client has it.
 * @param open opens the content; not called when the client has it
 */
export async function serveContent(
  open: () => Promise<Content>,
  serving: ServeContentOptions,
): Promise<Reply> {
  const { request, tag, audience } = serving;
  const common = { ETag: tag, 'Cache-Control': cacheFor(audience) };
  if (isKnown(request.headers, tag)) return new Reply(304, undefined, common);
  const content = await open();
  const { contentType, size, body } = content;
  const { fileName = content.fileName } = serving;
  const isStrict = audience === 'administrators';
  const headers = {
    ...protection,
    ...(isStrict && strictProtection),
    ...common,
    'Content-Type': contentType,
    // `application/octet-stream` makes browsers save the file instead of showing it.
    'Content-Disposition': contentDisposition(isStrict ? 'application/octet-stream' : contentType, fileName),
  };
  if (!(body instanceof OpenFile))
    return new Reply(200, body, { ...headers, 'Content-Length': String(size) });
  const range = rangeOf(request.headers, size, tag);
  if (range === 'unsatisfiable') {
    body.close();
    return new Reply(416, undefined, { ...common, 'Content-Range': `bytes */${size}` });
  }
  const { start, length } = range ?? { start: 0, length: size };
  return new Reply(range ? 206 : 200, new FilePart(body, start, length), {
    ...headers,
    'Accept-Ranges': 'bytes',
    'Content-Length': String(length),
    ...(range && { 'Content-Range': `bytes ${start}-${start + length - 1}/${size}` }),
  });
}

/**
 * Serves content to a remote server. Source: server-server API, `GET
 * /_matrix/federation/v1/media/download/{mediaId}`.
 */
export function serveMultipart(content: Content, randomness: Randomness): Reply {
  const boundary = randomString(randomness, 40);
  const head = [
    `--${boundary}`,
    'Content-Type: application/json',
    '',
    '{}',
    `--${boundary}`,
    `Content-Type: ${content.contentType}`,
    `Content-Disposition: ${contentDisposition(content.contentType, content.fileName)}`,
    '',
    '',
  ].join('\r\n');
  const tail = `\r\n--${boundary}--\r\n`;
  const bytes = streamOf(content);
  async function* parts(): AsyncGenerator<Buffer> {
    yield Buffer.from(head, 'latin1');
    yield* bytes;
    yield Buffer.from(tail, 'latin1');
  }
  return new Reply(200, streamOfPieces(parts(), bytes), {
    'Content-Type': `multipart/mixed; boundary=${boundary}`,
    'Content-Length': String(head.length + content.size + tail.length),
    'Cache-Control': 'no-store',
  });
}
