import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { build } from 'esbuild';
import { type Browser, chromium, type Page } from 'playwright-core';

/** Path of Chromium, by default the path in Debian. */
const chromiumPath = process.env['HEARTH_TEST_CHROMIUM'] ?? '/usr/bin/chromium';

export interface WebPage {
  readonly page: Page;
  /** Uncaught errors and logged errors of the page, except those about the missing TURN server. */
  readonly errors: readonly string[];
  close(): Promise<void>;
}

export function launchChromium(): Promise<Browser> {
  return chromium.launch({ executablePath: chromiumPath, args: ['--no-sandbox'], timeout: 120_000 });
}

/** Opens the client in Chromium. The page comes from its own web server, as for any web client. */
export async function openWebPage(): Promise<WebPage> {
  const files = new Map([
    ['/', { type: 'text/html', body: await readFile(new URL('index.html', import.meta.url)) }],
    ['/page.js', { type: 'text/javascript', body: await bundle() }],
  ]);
  const server = createServer((request, response) => {
    const file = files.get(request.url ?? '');
    if (!file) return response.writeHead(404).end();
    return response.writeHead(200, { 'content-type': file.type }).end(file.body);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  let browser: Browser | undefined;
  try {
    browser = await launchChromium();
    const page = await browser.newPage();
    page.setDefaultTimeout(120_000);
    const errors: string[] = [];
    page.on('pageerror', (error) => errors.push(String(error)));
    page.on('console', (message) => {
      const isAboutCalls = message.location().url.endsWith('/voip/turnServer') || /TURN/.test(message.text());
      if (message.type() === 'error' && !isAboutCalls) errors.push(message.text());
    });
    await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    const opened = browser;
    return {
      page,
      errors,
      async close() {
        await opened.close();
        server.close();
      },
    };
  } catch (error) {
    await browser?.close();
    server.close();
    throw error;
  }
}

/** Bundles the page and the SDK into one file. Encryption is tested without a browser only. */
async function bundle(): Promise<Uint8Array> {
  const { outputFiles } = await build({
    entryPoints: [new URL('page.js', import.meta.url).pathname],
    bundle: true,
    format: 'esm',
    write: false,
    define: { global: 'globalThis' },
    logLevel: 'error',
  });
  return outputFiles[0]!.contents;
}
