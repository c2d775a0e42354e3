import { type Cache, type CacheRegistry, MiB } from '../../kernel/caches/index.ts';

/**
 * Maximum number of stored ids of assertions: more than users log in within the minutes in which an assertion
 * is valid.
 */
const size = 20_000;

/** Stores the ids of used assertions in memory, so that no assertion logs a user in twice. */
export class UsedAssertions {
  readonly #ids: Cache<string, true>;

  constructor({ caches }: { readonly caches: CacheRegistry }) {
    // The size is fixed, because an assertion whose id was evicted could be used again.
    this.#ids = caches.create('saml_assertions', { size, maxBytes: 4 * MiB, sizeOf: () => 200, fixed: true });
  }

  /**
   * Marks an assertion as used.
   * @param id of the assertion
   * @throws Error when the assertion was used before, or has no usable id
   */
  use(issuer: string, id: string | undefined): void {
    if (id === undefined || id === '' || id.length > 255) throw new Error('the assertion has no usable id');
    const key = `${issuer} ${id}`;
    if (this.#ids.has(key)) throw new Error('the assertion was used before');
    this.#ids.set(key, true);
  }
}
