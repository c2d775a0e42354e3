import { forbidden } from '../../protocol/index.ts';

/** Which servers there is federation with. */
export class DomainWhitelist {
  readonly #names: ReadonlySet<string> | undefined;

  /** @param names null: with all */
  constructor(names: readonly string[] | null) {
    this.#names = names === null ? undefined : new Set(names);
  }

  /** Whether there is federation with the server. */
  allows(serverName: string): boolean {
    return this.#names === undefined || this.#names.has(serverName);
  }

  /** @throws MatrixError M_FORBIDDEN */
  check(serverName: string): void {
    if (!this.allows(serverName)) throw forbidden(`This server does not federate with ${serverName}`);
  }
}
