import { parse as parseQuery } from 'fast-querystring';
import findMyWay, { type HTTPMethod } from 'find-my-way';

/** Values of equal names in a query string are a list. */
export type ParsedQuery = Readonly<Record<string, string | string[] | undefined>>;

export interface Match<T> {
  /** `null`: the path is not properly percent-encoded. */
  readonly store: T | null;
  /** Percent-decoded path parameters by name. */
  readonly params: Readonly<Record<string, string>>;
  readonly searchParams: ParsedQuery;
}

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE'] as const satisfies HTTPMethod[];

const neverCalled = () => undefined;

/** Finds what is registered for a method and a path. Parameters are `:name`, `*` is the rest of a path. */
export class RouteTable<T extends object> {
  readonly #router = findMyWay({
    // Identifiers take up to 255 bytes, each up to three characters; the listener bounds the URL as a whole.
    maxParamLength: 16_384,
    querystringParser: parseQuery,
    onBadUrl: neverCalled,
  });

  add(method: (typeof methods)[number], path: string, value: T): void {
    this.#router.on(method, path, neverCalled, value);
  }

  /** @param url path and query; null when nothing is registered for it */
  find(method: string, url: string): Match<T> | null {
    return this.#router.find(method as HTTPMethod, url) as Match<T> | null;
  }

  /** Whether the URL is registered for any method: tells a wrong method (405) from an unknown path (404). */
  has(url: string): boolean {
    return methods.some((method) => this.find(method, url) !== null);
  }
}
