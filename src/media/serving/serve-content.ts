import { Readable } from 'node:stream';
import { Reply } from '../../kernel/http/index.ts';
import { type Randomness, randomString } from '../../kernel/randomness.ts';
import type { MediaFiles } from '../disk/media-files.ts';
import { mediaNotFound } from '../media-address.ts';
import type { MediaDescription, MediaFile } from '../media-file.ts';
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

/** Content never changes; authenticated media may be cached by the browser only. */
const cacheFor = (audience: 'public' | 'private') => `${audience}, max-age=86400, immutable`;

/** A file or one of its thumbnails, ready to be served. */
export interface Content extends MediaDescription {
  /** Bytes. */
  readonly size: number;
  /** Streams the bytes; opens the file at the first read. */
  read(): Readable;
}

/**
 * Returns a file as content, which must be read when it comes from a storage provider.
 * @throws MatrixError M_NOT_FOUND when the file is missing; M_UNKNOWN (503) when a storage provider fails
 */
export async function contentOf(files: MediaFiles, file: MediaFile): Promise<Content> {
  const { area, fileId, contentType, fileName, size } = file;
  if (await files.isOnDisk(file))
    return { contentType, fileName, size, read: () => files.disk.read(area, fileId) };
  const restored = await files.restore(file);
  if (restored === undefined) throw mediaNotFound();
  return { contentType, fileName, size, read: () => restored };
}

export interface Serving {
  /** Replaces the name with which it was uploaded. */
  readonly fileName?: string | undefined;
  /** Whether shared caches may store it. */
  readonly audience: 'public' | 'private';
}

/** Serves content to a client. */
export function serveContent(content: Content, { fileName = content.fileName, audience }: Serving): Reply {
  return new Reply(200, content.read(), {
    ...protection,
    'Content-Type': content.contentType,
    'Content-Disposition': contentDisposition(content.contentType, fileName),
    'Content-Length': String(content.size),
    'Cache-Control': cacheFor(audience),
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
  async function* parts(): AsyncGenerator<Buffer> {
    yield Buffer.from(head, 'latin1');
    yield* content.read();
    yield Buffer.from(tail, 'latin1');
  }
  return new Reply(200, Readable.from(parts(), { objectMode: false }), {
    'Content-Type': `multipart/mixed; boundary=${boundary}`,
    'Content-Length': String(head.length + content.size + tail.length),
    'Cache-Control': 'no-store',
  });
}
