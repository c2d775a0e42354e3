import { Readable } from 'node:stream';
import { Reply } from '../../kernel/http/index.ts';
import { type Randomness, randomString } from '../../kernel/randomness.ts';
import type { MediaStore } from '../disk/media-store.ts';
import { noMedia } from '../media-address.ts';
import type { MediaFile } from '../media-file.ts';
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

export interface FileServing {
  /** In place of the name that it was uploaded with. */
  readonly fileName?: string | undefined;
  /** Whether caches between server and client may keep it. */
  readonly audience: 'public' | 'private';
}

/** A file for a client. @throws MatrixError M_NOT_FOUND when the disk does not have it (any more) */
export async function serveFile(
  disk: MediaStore,
  file: MediaFile,
  { fileName = file.fileName, audience }: FileServing,
): Promise<Reply> {
  const size = await sizeOnDisk(disk, file);
  return new Reply(200, disk.read(file.area, file.fileId), {
    ...protection,
    'Content-Type': file.contentType,
    'Content-Disposition': contentDisposition(file.contentType, fileName),
    'Content-Length': String(size),
    'Cache-Control': cacheFor(audience),
  });
}

/** A file for another server. Source: server-server API, `GET /_matrix/federation/v1/media/download/{mediaId}`. */
export async function serveParts(disk: MediaStore, file: MediaFile, randomness: Randomness): Promise<Reply> {
  const size = await sizeOnDisk(disk, file);
  const boundary = randomString(randomness, 40);
  const head = [
    `--${boundary}`,
    'Content-Type: application/json',
    '',
    '{}',
    `--${boundary}`,
    `Content-Type: ${file.contentType}`,
    `Content-Disposition: ${contentDisposition(file.contentType, file.fileName)}`,
    '',
    '',
  ].join('\r\n');
  const tail = `\r\n--${boundary}--\r\n`;
  async function* parts(): AsyncGenerator<Buffer> {
    yield Buffer.from(head, 'latin1');
    yield* disk.read(file.area, file.fileId);
    yield Buffer.from(tail, 'latin1');
  }
  return new Reply(200, Readable.from(parts(), { objectMode: false }), {
    'Content-Type': `multipart/mixed; boundary=${boundary}`,
    'Content-Length': String(head.length + size + tail.length),
    'Cache-Control': 'no-store',
  });
}

async function sizeOnDisk(disk: MediaStore, file: MediaFile): Promise<number> {
  const size = await disk.sizeOf(file.area, file.fileId);
  if (size !== file.size) throw noMedia();
  return size;
}
