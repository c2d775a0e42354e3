import { Readable } from 'node:stream';
import { Reply } from '../../kernel/http/index.ts';
import { type Randomness, randomString } from '../../kernel/randomness.ts';
import type { MediaStore } from '../disk/media-store.ts';
import { noMedia } from '../media-address.ts';
import type { MediaDescription, MediaFile } from '../media-file.ts';
import { contentDisposition } from './content-disposition.ts';

/**
 * What keeps content from harming those who look at it, and lets web clients use it.
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

/** Content never changes; media that asks who one is stays in the browser's own cache. */
const cacheFor = (audience: 'public' | 'private') => `${audience}, max-age=86400, immutable`;

/** What is served: a file, or a thumbnail of it. */
export interface Content extends MediaDescription {
  /** Bytes. */
  readonly size: number;
  /** The bytes; nothing is opened before somebody reads. */
  read(): Readable;
}

/** A file as it is. @throws MatrixError M_NOT_FOUND when the disk does not have it (any more) */
export async function contentOf(disk: MediaStore, file: MediaFile): Promise<Content> {
  const { area, fileId, contentType, fileName, size } = file;
  if ((await disk.sizeOf(area, fileId)) !== size) throw noMedia();
  return { contentType, fileName, size, read: () => disk.read(area, fileId) };
}

export interface Serving {
  /** In place of the name that it was uploaded with. */
  readonly fileName?: string | undefined;
  /** Whether caches between server and client may keep it. */
  readonly audience: 'public' | 'private';
}

/** Content for a client. */
export function serveContent(content: Content, { fileName = content.fileName, audience }: Serving): Reply {
  return new Reply(200, content.read(), {
    ...protection,
    'Content-Type': content.contentType,
    'Content-Disposition': contentDisposition(content.contentType, fileName),
    'Content-Length': String(content.size),
    'Cache-Control': cacheFor(audience),
  });
}

/** Content for another server. Source: server-server API, `GET /_matrix/federation/v1/media/download/{mediaId}`. */
export function serveParts(content: Content, randomness: Randomness): Reply {
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
