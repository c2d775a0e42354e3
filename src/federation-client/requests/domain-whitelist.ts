import { forbidden } from '../../protocol/index.ts';

/** Decides which servers this server federates with. */
export class DomainWhitelist {
  readonly #names: ReadonlySet<string> | undefined;

  /** @param names allowed servers; null allows all */
  constructor(names: readonly string[] | null) {
    this.#names = names === null ? undefined : new Set(names);
  }

  /** Whether this server federates with the named server. */
  allows(serverName: string): boolean {
    return this.#names === undefined || this.#names.has(serverName);
  }

  /** @throws MatrixError M_FORBIDDEN when the server is not allowed */
  check(serverName: string): void {
    if (!this.allows(serverName)) throw forbidden(`This server does not federate with ${serverName}`);
  }
}
