import { RE2JS } from 're2js';
import { literalPrefix } from './literal-prefix.ts';
import type { Namespace } from './registrations/registration.ts';

/**
 * The namespaces of a service for users, for aliases or for rooms. They are compiled into one pattern for all
 * namespaces and one for the exclusive namespaces. Matching takes linear time for all patterns (RE2).
 */
export class NamespaceSet {
  readonly #all: Pattern | undefined;
  readonly #exclusive: Pattern | undefined;

  constructor(namespaces: readonly Namespace[]) {
    this.#all = compile(namespaces);
    this.#exclusive = compile(namespaces.filter(({ exclusive }) => exclusive));
  }

  /** Whether an id is in one of the namespaces: whether the beginning of the id matches the pattern of a namespace. */
  has(id: string): boolean {
    return matches(this.#all, id);
  }

  /** Whether an id is in one of the exclusive namespaces. */
  hasExclusively(id: string): boolean {
    return matches(this.#exclusive, id);
  }

  get isEmpty(): boolean {
    return this.#all === undefined;
  }
}

/** The patterns of several namespaces. */
interface Pattern {
  /** Every id that matches begins with one of these strings. */
  readonly prefixes: readonly string[];
  /** One pattern for all namespaces; several where they cannot be joined. */
  readonly compiled: readonly RE2JS[];
}

function compile(namespaces: readonly Namespace[]): Pattern | undefined {
  if (namespaces.length === 0) return undefined;
  return {
    prefixes: namespaces.map(({ regex }) => literalPrefix(regex)),
    compiled: compileAll(namespaces.map(({ regex }) => regex)),
  };
}

/**
 * Compiles valid patterns into one. Compiles them one by one when they cannot be joined, because two of them have a
 * group of the same name.
 */
function compileAll(patterns: readonly string[]): readonly RE2JS[] {
  try {
    return [RE2JS.compile(patterns.map((pattern) => `(?:${pattern})`).join('|'))];
  } catch {
    return patterns.map((pattern) => RE2JS.compile(pattern));
  }
}

function matches(pattern: Pattern | undefined, id: string): boolean {
  if (!pattern?.prefixes.some((prefix) => id.startsWith(prefix))) return false;
  return pattern.compiled.some((compiled) => compiled.matcher(id).lookingAt());
}
