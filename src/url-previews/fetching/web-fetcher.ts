import type { Readable } from 'node:stream';
import { OutboundError, type OutboundHttp } from '../../kernel/outbound/index.ts';
import { forbidden, limitExceeded, MatrixError, unknown } from '../../protocol/index.ts';
import type { BlockedUrls } from '../blocked-urls.ts';

/** A response whose body must be read or destroyed. */
export interface WebResponse {
  /** The URL after redirects. */
  readonly url: URL;
  readonly contentType: string;
  readonly fileName: string | undefined;
  readonly body: Readable;
}

export interface WebFetcherDeps {
  readonly http: Pick<OutboundHttp, 'open'>;
  readonly blocked: BlockedUrls;
  readonly options: {
    /** Maximum bytes of a response. */
    readonly max_spider_size: number;
    readonly url_preview_accept_language: readonly string[];
  };
}

/** Maximum number of redirects that are followed. */
const maxRedirects = 5;

/** Timeout of a request with all its redirects, in milliseconds. */
const fetchTimeout = 20_000;

/** Maximum number of concurrent requests. */
const maxFetches = 50;

/**
 * Fetches web pages and images for previews. Limits their size, their time and the number of requests, and refuses
 * blocked URLs.
 */
export class WebFetcher {
  readonly #deps: WebFetcherDeps;
  readonly #stopping = new AbortController();
  #runningRequests = 0;

  constructor(deps: WebFetcherDeps) {
    this.#deps = deps;
  }

  /**
   * Requests a URL.
   * @param accept value of the `Accept` header
   * @throws MatrixError M_FORBIDDEN for blocked URLs and addresses, M_TOO_LARGE (502), M_LIMIT_EXCEEDED, M_UNKNOWN
   * (502; 504 after the timeout, and when this server stops)
   */
  async open(url: URL, accept: string): Promise<WebResponse> {
    const { http, blocked, options } = this.#deps;
    if (blocked.has(url)) throw urlBlocked();
    if (this.#runningRequests >= maxFetches) throw limitExceeded(1_000);
    this.#runningRequests++;
    try {
      const {
        status,
        headers,
        body,
        url: finalUrl,
      } = await http.open(url, {
        headers: { accept, 'accept-language': options.url_preview_accept_language.join(', ') },
        timeout: fetchTimeout,
        maxBody: options.max_spider_size,
        redirects: maxRedirects,
        mayFollow: (to) => !blocked.has(to),
        signal: this.#stopping.signal,
      });
      if (status < 200 || status > 299) {
        body.destroy();
        throw unknown(`The page cannot be fetched: its server answered with status ${status}`, 502);
      }
      const { 'content-type': type, 'content-disposition': disposition } = headers;
      body.once('close', () => this.#runningRequests--);
      return {
        url: finalUrl,
        contentType: first(type) ?? '',
        fileName: fileNameOf(finalUrl, first(disposition)),
        body,
      };
    } catch (error) {
      this.#runningRequests--;
      throw fetchError(error);
    }
  }

  /**
   * Reads a body to its end.
   * @param maxReturned maximum number of bytes that are returned, from the beginning
   * @throws the errors of `open`
   */
  async read({ body }: WebResponse, maxReturned: number): Promise<Buffer> {
    const chunks: Buffer[] = [];
    let remainingBytes = maxReturned;
    try {
      for await (const chunk of body as AsyncIterable<Buffer>) {
        if (remainingBytes > 0) chunks.push(chunk.subarray(0, remainingBytes));
        remainingBytes -= chunk.length;
      }
    } catch (error) {
      throw fetchError(error);
    }
    return Buffer.concat(chunks);
  }

  /** Aborts all requests. */
  stop(): void {
    this.#stopping.abort();
  }
}

const first = (header: string | string[] | undefined) => (Array.isArray(header) ? header[0] : header);

/**
 * Returns the file name in the `Content-Disposition` header, or the last segment of the path; `undefined` for an empty,
 * too long or malformed name.
 */
function fileNameOf({ pathname }: URL, disposition = ''): string | undefined {
  const [, quoted, plain] = /;\s*filename\s*=\s*(?:"([^"]*)"|([^\s;]+))/i.exec(disposition) ?? [];
  const name = quoted ?? plain ?? decoded(pathname.slice(pathname.lastIndexOf('/') + 1));
  return name === '' || name.length > 255 || !name.isWellFormed() || name.includes('\0') ? undefined : name;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The error for a URL that the operator does not allow to be previewed. */
export const urlBlocked = () => forbidden('The server does not preview this URL');

/** Returns the error for the client. It names no address, which would reveal the network of this server. */
export function fetchError(error: unknown): unknown {
  if (!(error instanceof OutboundError)) return error;
  switch (error.failure) {
    case 'refused-address':
      return urlBlocked();
    case 'too-large':
      return new MatrixError(502, 'M_TOO_LARGE', 'The page is too large for a preview');
    case 'timeout':
    case 'aborted':
      return unknown('The page was not received in time, or this server is stopping', 504);
    case 'unknown-host':
      return unknown('The host of the page was not found', 502);
    default:
      return unknown('The page cannot be fetched', 502);
  }
}
