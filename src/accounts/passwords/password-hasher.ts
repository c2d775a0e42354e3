import { createHmac } from 'node:crypto';
import { hash, verify } from '@node-rs/bcrypt';

/** Milliseconds of work are 2 to the power of `rounds`; the hash of nothing that anybody can type. */
export class PasswordHasher {
  readonly #rounds: number;
  readonly #pepper: string;
  #decoy: Promise<string> | undefined;

  /** @param rounds `bcrypt_rounds`: between 4 and 31 */
  constructor(rounds: number, pepper: string | null) {
    this.#rounds = rounds;
    this.#pepper = pepper ?? '';
  }

  /** Runs on another thread. */
  hash(password: string): Promise<string> {
    return hash(this.#digest(password), { cost: this.#rounds });
  }

  /** Takes the same time when there is no hash, so that nobody learns which accounts exist. */
  async verify(password: string, passwordHash: string | undefined): Promise<boolean> {
    this.#decoy ??= this.hash('');
    const matches = await verify(this.#digest(password), passwordHash ?? (await this.#decoy));
    return matches && passwordHash !== undefined;
  }

  /**
   * bcrypt reads 72 bytes at most and stops at a NUL, so it is given a digest of the whole password and the pepper.
   * The same characters typed on different keyboards may be composed differently: NFKC makes them equal.
   */
  #digest(password: string): string {
    return createHmac('sha256', this.#pepper).update(password.normalize('NFKC')).digest('base64');
  }
}
