import { parse as parseQuery } from 'fast-querystring';
import findMyWay, { type HTTPMethod } from 'find-my-way';

/** Query parameters by name; the values of a repeated name are a list. */
export type ParsedQuery = Readonly<Record<string, string | string[] | undefined>>;

export interface Match<T> {
  /** `null` if the path is not properly percent-encoded. */
  readonly store: T | null;
  /** Percent-decoded path parameters by name. */
  readonly params: Readonly<Record<string, string>>;
  readonly searchParams: ParsedQuery;
}

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE'] as const satisfies HTTPMethod[];

const neverCalled = () => undefined;

/** Maps methods and paths to values. Parameters are `:name`, `*` is the rest of a path. */
export class RouteTable<T extends object> {
  readonly #router = findMyWay({
    // Identifiers take up to 255 bytes, each up to three characters; the listener limits the whole URL.
    maxParamLength: 16_384,
    querystringParser: parseQuery,
    onBadUrl: neverCalled,
  });

  add(method: (typeof methods)[number], path: string, value: T): void {
    this.#router.on(method, path, neverCalled, value);
  }

  /**
   * @param url path and query, or an absolute URL
   * @returns null if nothing is registered for it
   */
  find(method: string, url: string): Match<T> | null {
    return this.#router.find(method as HTTPMethod, url) as Match<T> | null;
  }

  /**
   * Whether any method is registered for the URL: distinguishes a wrong method (405) from an unknown path
   * (404).
   */
  has(url: string): boolean {
    return methods.some((method) => this.find(method, url) !== null);
  }
}
