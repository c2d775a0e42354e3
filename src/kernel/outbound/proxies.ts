import { isIP } from 'node:net';
import { IpRangeSet } from '../config/index.ts';

export interface ProxyOptions {
  readonly http_proxy: string | null;
  readonly https_proxy: string | null;
  readonly no_proxy_hosts: readonly string[];
}

/** Chooses the proxy for a request, if it needs one. */
export class Proxies {
  readonly #http: URL | undefined;
  readonly #https: URL | undefined;
  readonly #exempt: (host: string) => boolean;

  /** @throws TypeError when a proxy is not an HTTP URL */
  constructor(options: ProxyOptions) {
    this.#http = proxyUrl('http_proxy', options.http_proxy);
    this.#https = proxyUrl('https_proxy', options.https_proxy);
    this.#exempt = exemption(options.no_proxy_hosts);
  }

  /**
   * Returns the proxy for requests to a host; `undefined` for direct connections.
   * @param secure whether the requests use TLS
   */
  for(secure: boolean, host: string): URL | undefined {
    const proxy = secure ? this.#https : this.#http;
    return proxy === undefined || this.#exempt(host.toLowerCase()) ? undefined : proxy;
  }
}

function proxyUrl(option: string, text: string | null): URL | undefined {
  if (text === null) return undefined;
  const url = URL.parse(text.includes('://') ? text : `http://${text}`);
  if (url === null || !['http:', 'https:'].includes(url.protocol)) {
    throw new TypeError(
      `${option} is not a URL; expected for example http://user:password@proxy.example.org:3128`,
    );
  }
  return url;
}

/**
 * Returns a function that tells whether a host is reached without the proxy. Names match themselves and their
 * subdomains, `*` matches everything, and addresses and CIDR ranges match addresses.
 */
function exemption(hosts: readonly string[]): (host: string) => boolean {
  if (hosts.includes('*')) return () => true;
  const isRange = (text: string) => isIP(text.split('/', 1)[0]!) !== 0;
  const ranges = new IpRangeSet(hosts.filter(isRange));
  const names = hosts
    .filter((text) => !isRange(text))
    .map((text) => text.toLowerCase().replace(/^\*?\./, ''));
  return (host) =>
    isIP(host) === 0
      ? names.some((name) => host === name || host.endsWith(`.${name}`))
      : ranges.contains(host);
}

/** Returns the `Proxy-Authorization` header for the user and password in the URL of a proxy. */
export function proxyAuthorization({ username, password }: URL): Readonly<Record<string, string>> {
  if (username === '' && password === '') return {};
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { 'proxy-authorization': `Basic ${Buffer.from(credentials).toString('base64')}` };
}
