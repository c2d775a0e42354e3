import type { Route } from './route.ts';

/** All paths that a listener serves, to tell a wrong method (405) from an unknown path (404). */
export class KnownPaths {
  readonly #routes: readonly Route[];
  #patterns: readonly RegExp[] | undefined;

  constructor(routes: readonly Route[]) {
    this.#routes = routes;
  }

  /** @param url path and query in the documents' spelling */
  has(url: string): boolean {
    this.#patterns ??= this.#routes.flatMap((route) => pathsOf(route).map(patternOf));
    const path = url.split('?', 1)[0]!;
    return this.#patterns.some((pattern) => pattern.test(path));
  }
}

/** The paths of a route: one or several that mean the same. */
export function pathsOf(route: Route): readonly string[] {
  const { path } = route.contract;
  return typeof path === 'string' ? [path] : path;
}

/** Paths of routes hold letters, digits, `_`, `-` and `.`. */
function patternOf(path: string): RegExp {
  const source = path
    .split('/')
    .map((part) => (part === '*' ? '.*' : part.startsWith(':') ? '[^/]*' : part.replaceAll('.', '\\.')))
    .join('/');
  return new RegExp(`^${source}$`);
}
