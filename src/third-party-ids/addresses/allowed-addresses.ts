import { RE2JS } from 're2js';

/** The option `allowed_local_3pids`. */
export type AllowedPatterns = readonly { readonly medium: string; readonly pattern: string }[] | null;

/** Decides which addresses accounts may have. */
export class AllowedAddresses {
  readonly #patterns: readonly { readonly medium: string; readonly pattern: RE2JS }[] | undefined;

  constructor(patterns: AllowedPatterns) {
    this.#patterns = patterns?.map(({ medium, pattern }) => ({ medium, pattern: RE2JS.compile(pattern) }));
  }

  /** Whether a pattern of the medium matches the beginning of the address; true without patterns. */
  isAllowed(medium: string, address: string): boolean {
    if (this.#patterns === undefined) return true;
    return this.#patterns.some(
      (allowed) => allowed.medium === medium && allowed.pattern.matcher(address).lookingAt(),
    );
  }
}
