import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Resolver } from '../../kernel/outbound/index.ts';

/** The content of a page, or a function that responds to requests for it. */
export type Page = string | Buffer | ((request: IncomingMessage, response: ServerResponse) => void);

/** A web server on the loopback address under any host name, and a resolver that leads host names to this server. */
export interface FakeWeb {
  /** Returns the URL of a path, by default under the host `pages.test`. */
  url(path: string, host?: string): string;
  /** Serves a page. @param type content type; by default `text/html` @returns the URL of the page */
  set(path: string, page: Page, type?: string): string;
  /** All requests so far. */
  readonly requests: { readonly path: string; readonly headers: IncomingMessage['headers'] }[];
  /** Returns the number of requests for a path. */
  count(path: string): number;
  /** Hosts that were looked up. */
  readonly lookups: string[];
  readonly resolver: Resolver;
  stop(): Promise<void>;
}

/**
 * Starts the web server.
 * @param addresses for a host name, a function that returns its address at each look-up; other hosts are at 127.0.0.1
 */
export async function startFakeWeb(
  addresses: Readonly<Record<string, (lookup: number) => string | undefined>> = {},
): Promise<FakeWeb> {
  const pages = new Map<string, { page: Page; type: string }>();
  const requests: FakeWeb['requests'] = [];
  const lookups: string[] = [];
  const server = createServer((request, response) => {
    const path = request.url ?? '';
    requests.push({ path, headers: request.headers });
    const entry = pages.get(path) ?? pages.get(path.split('?', 1)[0]!);
    if (entry === undefined) return response.writeHead(404).end();
    if (typeof entry.page === 'function') return entry.page(request, response);
    return response.writeHead(200, { 'content-type': entry.type }).end(entry.page);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const url = (path: string, host = 'pages.test') => `http://${host}:${port}${path}`;
  return {
    url,
    set(path, page, type = 'text/html') {
      pages.set(path, { page, type });
      return url(path);
    },
    requests,
    count: (path) => requests.filter((request) => request.path.split('?', 1)[0] === path).length,
    lookups,
    resolver: {
      async addresses(host) {
        lookups.push(host);
        const address = addresses[host];
        const resolved =
          address === undefined ? '127.0.0.1' : address(lookups.filter((name) => name === host).length);
        return resolved === undefined ? [] : [{ address: resolved, family: 4 }];
      },
      services: async () => [],
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
