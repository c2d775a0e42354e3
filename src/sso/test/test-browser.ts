import { type IncomingHttpHeaders, request } from 'node:http';

export interface BrowserPage {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** The URL after redirects. */
  readonly url: string;
}

let browsers = 0;

/** Maximum number of redirects of one request. */
const maxRedirects = 12;

/** A browser without scripts: follows redirects and stores cookies by origin. */
export class TestBrowser {
  /** The cookies of each origin, by name. */
  readonly cookies = new Map<string, Map<string, string>>();
  /** All URLs that were requested, in order. */
  readonly visited: string[] = [];
  readonly #hosts: ReadonlyMap<string, string>;
  /** Each browser has an address of its own, so that one test does not use up the rate limit of another. */
  readonly #ip = `192.0.2.${++browsers % 256}`;

  /**
   * @param hosts the address of the server behind each origin: requests for an origin are sent there in plain HTTP, with
   * the headers that a reverse proxy adds
   */
  constructor(hosts: ReadonlyMap<string, string> = new Map()) {
    this.#hosts = hosts;
  }

  get(url: string, headers: Readonly<Record<string, string>> = {}): Promise<BrowserPage> {
    return this.#go(url, 'GET', undefined, headers);
  }

  /** Sends a form. */
  post(
    url: string,
    fields: Readonly<Record<string, string>>,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<BrowserPage> {
    return this.#go(url, 'POST', new URLSearchParams(fields).toString(), headers);
  }

  /** Sends one request, and returns a redirect as it is. */
  once(
    url: string,
    method = 'GET',
    body?: string,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<BrowserPage> {
    this.visited.push(url);
    const { origin, host, pathname, search } = new URL(url);
    const address = this.#hosts.get(origin);
    const cookies = this.cookies.get(origin) ?? new Map<string, string>();
    this.cookies.set(origin, cookies);
    const requestHeaders = {
      host,
      cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; '),
      ...(address !== undefined && { 'x-forwarded-proto': 'https', 'x-forwarded-for': this.#ip }),
      ...(body !== undefined && { 'content-type': 'application/x-www-form-urlencoded' }),
      ...headers,
    };
    return new Promise((resolve, reject) => {
      const target = new URL(`${pathname}${search}`, address ?? origin);
      const call = request(target, { method, headers: requestHeaders, agent: false }, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () => {
          for (const line of response.headers['set-cookie'] ?? []) store(cookies, line);
          const page = { status: response.statusCode ?? 0, headers: response.headers, url };
          resolve({ ...page, body: Buffer.concat(chunks).toString() });
        });
      });
      call.on('error', reject);
      call.end(body);
    });
  }

  /** Follows redirects, but returns a redirect to `*.client.example` or to another scheme than HTTP and HTTPS. */
  async #go(
    url: string,
    method: string,
    body: string | undefined,
    headers: Readonly<Record<string, string>>,
  ): Promise<BrowserPage> {
    let page = await this.once(url, method, body, headers);
    for (let left = maxRedirects; left > 0; left--) {
      const { location } = page.headers;
      if (page.status < 300 || page.status > 308 || location === undefined) return page;
      const next = new URL(location, page.url);
      if (!next.protocol.startsWith('http') || next.hostname.endsWith('client.example')) return page;
      page = await this.once(next.href);
    }
    throw new Error(`too many redirects: ${this.visited.slice(-3).join(' ')}`);
  }
}

function store(cookies: Map<string, string>, line: string): void {
  const [pair = '', ...attributes] = line.split(';');
  const equalsSign = pair.indexOf('=');
  const [name, value] = [pair.slice(0, equalsSign).trim(), pair.slice(equalsSign + 1).trim()];
  const isDeleted = attributes.some((attribute) =>
    /^\s*(max-age=0|expires=thu, 01 jan 1970)/i.test(attribute),
  );
  if (isDeleted) cookies.delete(name);
  else cookies.set(name, value);
}
