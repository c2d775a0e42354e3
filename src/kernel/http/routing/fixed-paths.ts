import { toEcosystemSpelling } from './namespaces.ts';

/**
 * What belongs to paths without parameters, in both spellings. The most frequent requests of all have such paths:
 * finding them takes one look, where a router walks through its tree.
 */
export class FixedPaths<T> {
  readonly #paths = new Map<string, Map<string, T>>();

  /** @param path as routes declare it, in the documents' spelling; one with parameters is left out */
  add(methods: readonly string[], path: string, value: T): void {
    if (/[:*]/.test(path)) return;
    for (const spelling of new Set([path, toEcosystemSpelling(path)])) {
      const known = this.#paths.get(spelling) ?? new Map<string, T>();
      this.#paths.set(spelling, known);
      for (const method of methods) known.set(method, value);
    }
  }

  /** @param path as it was sent, without its query. Percent-encoded characters are not decoded. */
  find(method: string, path: string): T | undefined {
    return this.#paths.get(path)?.get(method);
  }
}
