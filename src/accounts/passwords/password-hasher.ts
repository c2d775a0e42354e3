import { createHmac } from 'node:crypto';
import { hash, verify } from '@node-rs/bcrypt';

/**
 * The suffix of stored hashes that were made from a digest of the password. Imported hashes have no suffix: they were
 * made from the password itself.
 */
const digestSuffix = '$hmac-sha256';

/** Maximum bytes that bcrypt reads. */
const maxBytes = 72;

/**
 * Hashes passwords with bcrypt. Each increment of `rounds` doubles the time. Hashes of other servers are accepted as
 * well: these servers append the pepper to the password and hash the result with bcrypt, version 2a, 2b or 2y.
 */
export class PasswordHasher {
  readonly #rounds: number;
  readonly #pepper: string;
  /** A hash with the current number of rounds, compared only to spend time. */
  #dummyHash: Promise<string> | undefined;

  /** @param rounds `bcrypt_rounds`: between 4 and 31 */
  constructor(rounds: number, pepper: string | null) {
    this.#rounds = rounds;
    this.#pepper = pepper ?? '';
  }

  /** Hashes a password on another thread. */
  async hash(password: string): Promise<string> {
    return (await hash(this.#digest(password), { cost: this.#rounds })) + digestSuffix;
  }

  /**
   * Whether a password matches a stored hash. Takes about as long without a stored hash as with one, so that accounts
   * cannot be enumerated by timing. With an imported hash, also the password itself is compared; with a hash of fewer
   * rounds, also the dummy hash. These comparisons run at the same time, on other threads.
   */
  async verify(password: string, passwordHash: string | undefined): Promise<boolean> {
    this.#dummyHash ??= hash('', { cost: this.#rounds });
    const dummy = await this.#dummyHash;
    if (passwordHash === undefined) {
      await verify(this.#digest(password), dummy);
      return false;
    }
    const comparisons = [verify(this.#digest(password), bcryptOf(passwordHash))];
    if (!passwordHash.endsWith(digestSuffix)) {
      const plain = this.#plain(password);
      // bcrypt stops at a NUL, so such a password must not match the hash of its beginning.
      if (!plain.includes(0)) comparisons.push(verify(plain, bcryptOf(passwordHash)));
    }
    const padding = roundsOf(passwordHash) < this.#rounds ? [verify('', dummy)] : [];
    const [matches] = await Promise.all([Promise.all(comparisons), ...padding]);
    return matches.includes(true);
  }

  /** Whether a hash was imported, or was made with fewer rounds than new hashes have. */
  isOutdated(passwordHash: string): boolean {
    return !passwordHash.endsWith(digestSuffix) || roundsOf(passwordHash) < this.#rounds;
  }

  /**
   * Returns a digest of the password and the pepper, because bcrypt reads at most 72 bytes and stops at a
   * NUL. NFKC makes characters equal that keyboards compose differently.
   */
  #digest(password: string): string {
    return createHmac('sha256', this.#pepper).update(password.normalize('NFKC')).digest('base64');
  }

  /** Returns the input that other servers hash. They append the pepper to the password and take the first 72 bytes. */
  #plain(password: string): Buffer {
    return Buffer.from(password.normalize('NFKC') + this.#pepper).subarray(0, maxBytes);
  }
}

/** Returns the bcrypt part of a stored hash. The version 2y is another name of 2b. */
const bcryptOf = (passwordHash: string) => passwordHash.replace(digestSuffix, '').replace(/^\$2y\$/, '$2b$');

/** Returns the binary logarithm of the number of rounds of a stored hash; 0 when it is not a bcrypt hash. */
const roundsOf = (passwordHash: string) => Number(/^\$2[aby]\$(\d\d)\$/.exec(passwordHash)?.[1] ?? 0);
