import { RE2JS } from 're2js';
import type { Namespace } from './registrations/registration.ts';

/**
 * The namespaces of one kind of a service, as one pattern for all and one for the exclusive ones. Matching takes linear
 * time, whatever the patterns are.
 */
export class NamespaceSet {
  readonly #all: RE2JS | undefined;
  readonly #exclusive: RE2JS | undefined;

  constructor(namespaces: readonly Namespace[]) {
    this.#all = compile(namespaces);
    this.#exclusive = compile(namespaces.filter(({ exclusive }) => exclusive));
  }

  /** Whether an id is in one of the namespaces, which match at its beginning. */
  has(id: string): boolean {
    return this.#all?.matcher(id).lookingAt() ?? false;
  }

  hasExclusively(id: string): boolean {
    return this.#exclusive?.matcher(id).lookingAt() ?? false;
  }

  get isEmpty(): boolean {
    return this.#all === undefined;
  }
}

function compile(namespaces: readonly Namespace[]): RE2JS | undefined {
  if (namespaces.length === 0) return undefined;
  return RE2JS.compile(namespaces.map(({ regex }) => `(?:${regex})`).join('|'));
}
