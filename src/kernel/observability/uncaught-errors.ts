/**
 * Decides whether an uncaught error belongs to code that the server does not depend on, for instance a module.
 * @returns whether the process continues
 */
export type ErrorClaim = (error: unknown) => boolean;

/** Decides about errors that no code has caught. They end the process, unless a part of the server claims them. */
export class UncaughtErrors {
  readonly #claims = new Set<ErrorClaim>();

  /** Adds a claim. @returns a function that removes it */
  claim(claim: ErrorClaim): () => void {
    this.#claims.add(claim);
    return () => void this.#claims.delete(claim);
  }

  /** Whether the process can continue after an error. */
  isClaimed(error: unknown): boolean {
    return [...this.#claims].some((claim) => claim(error));
  }
}
