import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Route, redirect, route } from '../kernel/http/index.ts';
import { staticFiles } from '../kernel/pages/index.ts';
import { MatrixError } from '../protocol/index.ts';
import { buildBundle } from './bundle.ts';

const path = '/_server/admin/ui';

/**
 * Folder with the bundle of a built program. A program that runs from its source files has no such folder, and bundles
 * the pages in memory.
 */
const bundleFolder = fileURLToPath(new URL('./bundle', import.meta.url));

/**
 * The content security policy: allows scripts, styles, requests and pictures of this server only, and pictures that a
 * script has downloaded.
 */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' blob: data:",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

const headers = {
  'Content-Security-Policy': policy,
  // The page and its script must be of the same version. With the ETag, unchanged files are not sent again.
  'Cache-Control': 'no-cache',
  'Referrer-Policy': 'no-referrer',
  'X-Frame-Options': 'DENY',
};

/**
 * Serves the pages of the console without authentication: they contain no data, and read all that they show from the
 * admin API.
 */
export function consoleRoutes(): Route[] {
  return [
    // The redirect is relative, so that it keeps the spelling of the path (`/_server` or `/_synapse`).
    route({ method: 'GET', path, auth: 'none' }, () => redirect('ui/')),
    staticFiles(`${path}/*`, readBundle, { index: 'index.html', headers, errors: 'page' }),
  ];
}

async function readBundle(): Promise<ReadonlyMap<string, Uint8Array>> {
  if (!existsSync(bundleFolder)) return buildOrExplain();
  const names = await readdir(bundleFolder);
  return new Map(
    await Promise.all(names.map(async (name) => [name, await readFile(join(bundleFolder, name))] as const)),
  );
}

/** Bundles the pages in memory. @throws MatrixError 503 M_UNKNOWN when esbuild is not installed */
async function buildOrExplain(): Promise<ReadonlyMap<string, Uint8Array>> {
  try {
    return await buildBundle();
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    const text = 'The console has not been built: run "npm ci" and "npm run build", and restart the server';
    throw new MatrixError(503, 'M_UNKNOWN', text);
  }
}
