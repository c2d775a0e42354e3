import { parse as parseQuery } from 'fast-querystring';

/** Query parameters by name; the values of a repeated name are a list. */
export type ParsedQuery = Readonly<Record<string, string | string[] | undefined>>;

export interface Match<T> {
  /** `null` if the path is not properly percent-encoded. */
  readonly value: T | null;
  /** Percent-decoded path parameters by name. */
  readonly params: Readonly<Record<string, string>>;
  readonly searchParams: ParsedQuery;
}

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

const methods: readonly string[] = ['GET', 'PUT', 'POST', 'DELETE'] satisfies Method[];

/** The value that is registered for a method at the end of a path. */
interface Leaf<T> {
  readonly value: T;
  /** Names of the parameters, in the order of the path. */
  readonly names: readonly string[];
}

/** A node of the tree: all paths that begin with the same segments. */
interface Branch<T> {
  /** The branches of paths that continue with a fixed text, by this text. */
  segments?: Map<string, Branch<T>>;
  /** The branch of paths that continue with a parameter. */
  parameter?: Branch<T>;
  /** The leaves of paths that end here. */
  ends?: Leaves<T>;
  /** The leaves of paths that continue with a wildcard. */
  wildcards?: Leaves<T>;
}

/** Leaves by method. The key `anyMethod` has the leaf that was added first. */
type Leaves<T> = Map<string, Leaf<T>>;

/**
 * Maximum characters of a decoded parameter, far more than an identifier has. The listener limits the whole URL.
 */
const maxParameterLength = 16_384;

/** Stands for any method in look-ups. */
const anyMethod = '*';

/**
 * Maps methods and paths to values. `:name` is a parameter; `*` as the last segment is a wildcard for the rest of a
 * path. Segments with a fixed text take precedence over parameters, and these over wildcards. HEAD finds the values of
 * GET.
 */
export class RouteTable<T extends object> {
  readonly #root: Branch<T> = {};
  /** The leaves of paths without parameters, so that one look-up finds them. */
  readonly #fixed = new Map<string, Leaves<T>>();

  /** Registers a value. @throws Error when the method and path have a value already */
  add(method: Method, path: string, value: T): void {
    const names: string[] = [];
    let branch = this.#root;
    for (const segment of path.slice(1).split('/')) {
      if (segment === '*') {
        branch.wildcards ??= new Map();
        addLeaf(branch.wildcards, method, { value, names: [...names, '*'] }, path);
        return;
      }
      if (segment.startsWith(':')) names.push(segment.slice(1));
      branch = branchOf(branch, segment);
    }
    branch.ends ??= new Map();
    addLeaf(branch.ends, method, { value, names }, path);
    if (names.length === 0) this.#fixed.set(path, branch.ends);
  }

  /**
   * Finds the value for a request.
   * @param url path and query, or an absolute URL
   * @returns null if no value is registered for method and URL
   */
  find(method: string, url: string): Match<T> | null {
    const methodToFind = method === 'HEAD' ? 'GET' : method;
    return methods.includes(methodToFind) ? this.#find(methodToFind, url) : null;
  }

  /**
   * Whether any method is registered for the URL: distinguishes a wrong method (405) from an unknown path
   * (404).
   */
  has(url: string): boolean {
    return this.#find(anyMethod, url) !== null;
  }

  #find(method: string, url: string): Match<T> | null {
    const local = url.startsWith('/') ? url : url.replace(/^https?:\/\/[^/?#]*/i, '');
    const end = endOfPath(local);
    const path = end < 0 ? local : local.slice(0, end);
    const isEncoded = path.includes('%');
    if (isEncoded && !isProperlyEncoded(path)) return { value: null, params: {}, searchParams: {} };
    const values: string[] = [];
    const leaf =
      this.#fixed.get(path)?.get(method) ?? findLeaf(this.#root, { method, path, isEncoded, values }, 1);
    if (leaf === undefined) return null;
    const { names, value } = leaf;
    const params: Record<string, string> = {};
    for (let index = 0; index < names.length; index++) params[names[index]!] = values[index]!;
    const searchParams = parseQuery(end < 0 ? '' : local.slice(end + 1)) as ParsedQuery;
    return { value, params, searchParams };
  }
}

/** Returns the branch for the next segment, which is made if it is missing. */
function branchOf<T>(branch: Branch<T>, segment: string): Branch<T> {
  if (segment.startsWith(':')) {
    branch.parameter ??= {};
    return branch.parameter;
  }
  branch.segments ??= new Map();
  const next = branch.segments.get(segment) ?? {};
  branch.segments.set(segment, next);
  return next;
}

function addLeaf<T>(leaves: Leaves<T>, method: Method, leaf: Leaf<T>, path: string): void {
  if (leaves.has(method)) throw new Error(`${method} ${path} is registered twice`);
  leaves.set(method, leaf);
  if (!leaves.has(anyMethod)) leaves.set(anyMethod, leaf);
}

interface LookUp {
  readonly method: string;
  readonly path: string;
  /** Whether a part of the path is percent-encoded. */
  readonly isEncoded: boolean;
  /** Values of the parameters up to the branch. */
  readonly values: string[];
}

/** Finds the leaf of a path. @param start index of the first segment below `branch` */
function findLeaf<T>(branch: Branch<T>, lookUp: LookUp, start: number): Leaf<T> | undefined {
  const { method, path, isEncoded, values } = lookUp;
  if (start > path.length) return branch.ends?.get(method);
  const slash = path.indexOf('/', start);
  const end = slash < 0 ? path.length : slash;
  const sent = path.slice(start, end);
  const segment = isEncoded ? decoded(sent) : sent;
  const fixed = branch.segments?.get(segment);
  const found = fixed && findLeaf(fixed, lookUp, end + 1);
  if (found !== undefined) return found;
  if (branch.parameter !== undefined && segment.length <= maxParameterLength) {
    values.push(segment);
    const leaf = findLeaf(branch.parameter, lookUp, end + 1);
    if (leaf !== undefined) return leaf;
    values.pop();
  }
  const wildcard = branch.wildcards?.get(method);
  if (wildcard !== undefined) values.push(decoded(path.slice(start)));
  return wildcard;
}

/** Returns the index of the `?` or `#` after the path; -1 without one. */
function endOfPath(url: string): number {
  const query = url.indexOf('?');
  const fragment = url.indexOf('#');
  return fragment < 0 || (query >= 0 && query < fragment) ? query : fragment;
}

const decoded = (text: string) => (text.includes('%') ? decodeURIComponent(text) : text);

function isProperlyEncoded(path: string): boolean {
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    return false;
  }
}
