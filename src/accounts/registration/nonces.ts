import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../../kernel/clock.ts';
import { type Randomness, randomString } from '../../kernel/randomness.ts';

/** Characters of the random part of a nonce. */
const randomLength = 32;

/** Bytes of the key of this process. */
const keyLength = 32;

/** A random part, the expiry in milliseconds since the epoch, and a MAC over both. */
const form = /^([A-Za-z0-9]+\.(\d{1,16}))\.([\w-]+)$/;

/**
 * Issues nonces that are valid once and for a limited time. Issued nonces are not stored, because a MAC proves that
 * they were issued. Clients that do not know the registration secret therefore take no memory, and displace no nonces
 * of other clients.
 */
export class Nonces {
  readonly #clock: Clock;
  readonly #randomness: Randomness;
  readonly #lifetime: number;
  readonly #key: Uint8Array;
  /** Used nonces and their expiry in milliseconds since the epoch. */
  readonly #used = new Map<string, number>();

  /** @param lifetime milliseconds for which a nonce is valid */
  constructor({ clock, randomness }: { clock: Clock; randomness: Randomness }, lifetime: number) {
    this.#clock = clock;
    this.#randomness = randomness;
    this.#lifetime = lifetime;
    this.#key = randomness.bytes(keyLength);
  }

  /** Returns a new nonce. */
  issue(): string {
    const text = `${randomString(this.#randomness, randomLength)}.${this.#clock.now() + this.#lifetime}`;
    return `${text}.${this.#mac(text)}`;
  }

  /** Whether a nonce was issued by this process, has not expired and has not been used. */
  isValid(nonce: string): boolean {
    const [, text = '', expiry, mac = ''] = form.exec(nonce) ?? [];
    const [given, expected] = [Buffer.from(mac), Buffer.from(this.#mac(text))];
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) return false;
    return Number(expiry) > this.#clock.now() && !this.#used.has(nonce);
  }

  /** Marks a valid nonce as used. */
  markUsed(nonce: string): void {
    const now = this.#clock.now();
    for (const [used, expiry] of this.#used) if (expiry <= now) this.#used.delete(used);
    this.#used.set(nonce, now + this.#lifetime);
  }

  #mac(text: string): string {
    return createHmac('sha256', this.#key).update(text).digest('base64url');
  }
}
