import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { extname, join, relative, sep } from 'node:path';
import { notFound } from '../../protocol/index.ts';
import { Reply, type Route, route } from '../http/index.ts';

interface StaticFile {
  readonly bytes: Uint8Array;
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

/** Makes browsers revalidate a file after an hour; the response is 304 while the file is unchanged. */
const cacheControl = 'public, max-age=3600';

/** Options of one route of static files. */
export interface StaticFileOptions {
  /** Name of the file that is returned for the path without a file name. */
  readonly index?: string;
  /** Replaces headers, or adds them. */
  readonly headers?: Readonly<Record<string, string>>;
  /** `page`: errors are shown as an HTML page. */
  readonly errors?: 'page';
}

/**
 * Serves the files of a folder of the program. They are read into memory at the first request and then looked up by
 * name, so no path of a request reaches the disk.
 * @param path of the route, ending in `/*`
 * @param source absolute path of a folder; every file in it and in its subfolders is public. Or a function that returns
 * the contents of public files by name
 */
export function staticFiles(
  path: `${string}/*`,
  source: string | (() => Promise<ReadonlyMap<string, Uint8Array>>),
  { index, headers: added, errors }: StaticFileOptions = {},
): Route {
  let files: Promise<ReadonlyMap<string, StaticFile>> | undefined;
  const read = async () => {
    const contents = typeof source === 'string' ? await readAll(source) : await source();
    return new Map([...contents].map(([name, bytes]) => [name, fileOf(name, bytes, added)]));
  };
  return route(
    { method: 'GET', path, auth: 'none', ...(errors && { errors }) },
    async ({ params, headers }) => {
      files ??= read().catch((error: unknown) => {
        files = undefined; // The next request reads them again.
        throw error;
      });
      const name = params['*'] === '' && index !== undefined ? index : params['*'];
      const file = (await files).get(name);
      if (file === undefined) throw notFound('There is no such file');
      return matchesTag(file.headers['ETag']!, headers['if-none-match'])
        ? new Reply(304, undefined, file.headers)
        : new Reply(200, file.bytes, file.headers);
    },
  );
}

async function readAll(folder: string): Promise<Map<string, Uint8Array>> {
  const files = new Map<string, Uint8Array>();
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    files.set(relative(folder, path).replaceAll(sep, '/'), await readFile(path));
  }
  return files;
}

function fileOf(name: string, bytes: Uint8Array, added: StaticFileOptions['headers']): StaticFile {
  const headers = {
    'Content-Type': contentTypes[extname(name)] ?? 'application/octet-stream',
    // A weak tag, because the response may be compressed.
    ETag: `W/"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`,
    'Cache-Control': cacheControl,
    'X-Content-Type-Options': 'nosniff',
    'Content-Security-Policy': "default-src 'none'; style-src 'self' 'unsafe-inline'; frame-ancestors 'none'",
    ...added,
  };
  return { bytes, headers };
}

/** Whether `If-None-Match` names an entity tag, by weak comparison (RFC 9110, section 13.1.2). */
function matchesTag(tag: string, ifNoneMatch: string | string[] | undefined): boolean {
  if (typeof ifNoneMatch !== 'string') return false;
  if (ifNoneMatch.trim() === '*') return true;
  const opaque = (text: string) => text.trim().replace(/^W\//, '');
  return ifNoneMatch.split(',').some((known) => opaque(known) === opaque(tag));
}
