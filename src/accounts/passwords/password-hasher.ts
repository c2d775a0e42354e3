import { createHmac } from 'node:crypto';
import { hash, verify } from '@node-rs/bcrypt';

/** Hashes passwords with bcrypt. Each further round doubles the time. */
export class PasswordHasher {
  readonly #rounds: number;
  readonly #pepper: string;
  #dummyHash: Promise<string> | undefined;

  /** @param rounds `bcrypt_rounds`: between 4 and 31 */
  constructor(rounds: number, pepper: string | null) {
    this.#rounds = rounds;
    this.#pepper = pepper ?? '';
  }

  /** Runs on another thread. */
  hash(password: string): Promise<string> {
    return hash(this.#digest(password), { cost: this.#rounds });
  }

  /** Takes as long without a stored hash as with one, so that accounts cannot be enumerated by timing. */
  async verify(password: string, passwordHash: string | undefined): Promise<boolean> {
    this.#dummyHash ??= this.hash('');
    const matches = await verify(this.#digest(password), passwordHash ?? (await this.#dummyHash));
    return matches && passwordHash !== undefined;
  }

  /**
   * Returns a digest of the password and the pepper, because bcrypt reads at most 72 bytes and stops at a
   * NUL. NFKC makes characters equal that keyboards compose differently.
   */
  #digest(password: string): string {
    return createHmac('sha256', this.#pepper).update(password.normalize('NFKC')).digest('base64');
  }
}
