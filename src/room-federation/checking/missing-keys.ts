import type { Cache, CacheRegistry } from '../../kernel/caches/index.ts';
import type { Clock } from '../../kernel/clock.ts';

/**
 * For this many milliseconds (two hours) after the first failed look-up of a key, events that are signed with the key
 * are fetched again.
 */
export const keyWait = 2 * 60 * 60_000;

/** A missing key is cached for this many milliseconds after its last failed look-up. */
const rememberedFor = 24 * 60 * 60_000;

/** Maximum number of missing keys that are cached. */
const maxKeys = 5_000;

/** Estimated bytes of a key. */
const keyBytes = 200;

interface MissingKey {
  /** When the first look-up failed, in milliseconds since the epoch. */
  readonly firstAt: number;
  /** When the last look-up failed, in milliseconds since the epoch. */
  readonly lastAt: number;
}

/**
 * Caches which keys of other servers could not be fetched. Their servers may be unreachable for a while, so events
 * that are signed with these keys are fetched again for two hours. After that such events count as invalid, because
 * old rooms have members of servers that will never return (decision 0165). A restart begins the two hours again.
 */
export class MissingKeys {
  readonly #clock: Clock;
  readonly #keys: Cache<string, MissingKey>;

  constructor(clock: Clock, caches: CacheRegistry) {
    this.#clock = clock;
    this.#keys = caches.create('missing_server_keys', {
      // A fixed cache keeps unused entries: the pauses between two look-ups are longer than other caches keep them.
      fixed: true,
      size: maxKeys,
      maxBytes: maxKeys * keyBytes,
      sizeOf: () => keyBytes,
      isExpired: ({ lastAt }) => lastAt + rememberedFor <= clock.now(),
    });
  }

  /** Records a failed look-up. @returns whether events signed with the key are fetched again */
  recordFailure(serverName: string, keyId: string): boolean {
    const name = `${serverName} ${keyId}`;
    const now = this.#clock.now();
    const { firstAt } = this.#keys.get(name) ?? { firstAt: now };
    this.#keys.set(name, { firstAt, lastAt: now });
    return now - firstAt < keyWait;
  }
}
