import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { extname, join, relative, sep } from 'node:path';
import { notFound } from '../../protocol/index.ts';
import { Reply, type Route, route } from '../http/index.ts';

interface StaticFile {
  readonly bytes: Buffer;
  readonly headers: Readonly<Record<string, string>>;
}

const contentTypes: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.ico': 'image/x-icon',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
  '.webp': 'image/webp',
  '.woff2': 'font/woff2',
};

/** Browsers revalidate after an hour; the response is 304 while the file is unchanged. */
const cacheControl = 'public, max-age=3600';

/**
 * Serves the files of a folder of the program. They are read into memory at the first request and then looked up by
 * name, so no path of a request reaches the disk.
 * @param path of the route, ending in `/*`
 * @param folder absolute path; every file in it and in its subfolders is public
 */
export function staticFiles(path: `${string}/*`, folder: string): Route {
  let files: Promise<ReadonlyMap<string, StaticFile>> | undefined;
  return route({ method: 'GET', path, auth: 'none' }, async ({ params, headers }) => {
    files ??= readAll(folder).catch((error: unknown) => {
      files = undefined; // The next request reads them again.
      throw error;
    });
    const file = (await files).get(params['*']);
    if (file === undefined) throw notFound('There is no such file');
    return isKnown(file.headers['ETag']!, headers['if-none-match'])
      ? new Reply(304, undefined, file.headers)
      : new Reply(200, file.bytes, file.headers);
  });
}

async function readAll(folder: string): Promise<Map<string, StaticFile>> {
  const files = new Map<string, StaticFile>();
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    files.set(relative(folder, path).replaceAll(sep, '/'), fileOf(path, await readFile(path)));
  }
  return files;
}

function fileOf(path: string, bytes: Buffer): StaticFile {
  const headers = {
    'Content-Type': contentTypes[extname(path)] ?? 'application/octet-stream',
    // A weak tag, because the response may be compressed.
    ETag: `W/"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`,
    'Cache-Control': cacheControl,
    'X-Content-Type-Options': 'nosniff',
    'Content-Security-Policy': "default-src 'none'; style-src 'self' 'unsafe-inline'; frame-ancestors 'none'",
  };
  return { bytes, headers };
}

/** Compares tags weakly (RFC 9110, section 13.1.2). */
function isKnown(tag: string, ifNoneMatch: string | string[] | undefined): boolean {
  if (typeof ifNoneMatch !== 'string') return false;
  if (ifNoneMatch.trim() === '*') return true;
  const opaque = (text: string) => text.trim().replace(/^W\//, '');
  return ifNoneMatch.split(',').some((known) => opaque(known) === opaque(tag));
}
