import type { Cache, CacheRegistry } from '../../kernel/caches/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import { ConcurrencyLimit } from '../../kernel/concurrency-limit.ts';
import { LoadOnce } from '../../kernel/load-once.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import type { FederationClient } from '../requests/federation-client.ts';
import { fetchFromNotary, fetchFromOwner, type KeyServer } from './fetch-keys.ts';
import type { KeyResponse } from './key-response.ts';
import { anyKey, satisfies, type WantedKey } from './wanted-key.ts';

/**
 * Why keys are needed: to authenticate a request (so its server is reachable), to verify events (their
 * servers may be gone), or to answer as a notary.
 */
export type KeyPurpose = 'request' | 'events' | 'notary';

export interface KeyFetcherDeps {
  readonly caches: CacheRegistry;
  readonly requests: FederationClient;
  readonly notaries: readonly KeyServer[];
  readonly clock: Clock;
  readonly log: Logger;
  /** Stores fetched keys. */
  readonly save: (response: KeyResponse, isFromOwner: boolean) => Promise<void>;
}

/**
 * Milliseconds between two requests to one server after a response without the wanted keys. Each request without a
 * valid response doubles the time.
 */
const minPause = 5_000;

/** Maximum milliseconds between two requests to one server after failures. */
const maxPause = 600_000;

/** Requests to a server are paused after this number of responses with wanted keys within `minPause`. */
const maxHelpful = 5;

/** Milliseconds until a key that notaries did not have is requested from them again. */
const missingPause = 300_000;

/** Maximum number of servers and keys whose last request is remembered. */
const maxRemembered = 10_000;

interface Pause {
  /** End of the pause, in milliseconds since the epoch. */
  readonly until: number;
  /** Length of the pause in milliseconds, which the next failure doubles. */
  readonly length: number;
  /** Start of a period of `minPause`, in milliseconds since the epoch. */
  readonly since: number;
  /** Number of responses with wanted keys in the period that begins at `since`. */
  readonly helpful: number;
}

/**
 * Fetches keys of other servers, from the servers themselves and from notaries. Requests for invented server
 * names or key ids are limited in rate and concurrency.
 */
export class KeyFetcher {
  readonly #deps: KeyFetcherDeps;
  /** Running requests by server. */
  readonly #running = new LoadOnce<string, KeyResponse | undefined>();
  /**
   * Callers that wait for a slot or a response, by purpose and server, so that a key for a request does not wait behind
   * keys for events.
   */
  readonly #waiting = new LoadOnce<string, KeyResponse | undefined>();
  readonly #pauses: Cache<string, Pause>;
  /** When a key may be requested from notaries again, in milliseconds since the epoch, by server and key id. */
  readonly #missing: Cache<string, number>;
  /**
   * For each purpose, the maximum number of running requests, and the maximum number of servers whose requests wait.
   */
  readonly #limits: Readonly<Record<KeyPurpose, ConcurrencyLimit>> = {
    request: new ConcurrencyLimit(64, 512),
    events: new ConcurrencyLimit(32, 20_000),
    notary: new ConcurrencyLimit(16, 1_000),
  };

  constructor(deps: KeyFetcherDeps) {
    this.#deps = deps;
    // Fixed, because the pauses protect other servers from requests.
    this.#pauses = deps.caches.create('key_request_pauses', { size: maxRemembered, fixed: true });
    this.#missing = deps.caches.create('keys_that_notaries_lack', {
      size: maxRemembered,
      fixed: true,
      isExpired: (until) => until <= deps.clock.now(),
    });
  }

  /**
   * Fetches as many of the wanted keys as possible and passes them to `save`. Requests keys for events from notaries
   * first, keys for a request from notaries last, and keys for an answer as a notary from their owners only. Never
   * rejects.
   */
  async fetch(wantedKeys: readonly WantedKey[], purpose: KeyPurpose): Promise<void> {
    if (purpose === 'events') {
      const foundByNotaries = await this.#fetchFromNotaries(this.#exceptMissing(wantedKeys));
      await this.#fetchFromOwners(
        wantedKeys.filter((wanted) => !foundByNotaries.has(wanted)),
        purpose,
      );
      return;
    }
    const due = wantedKeys.filter(({ serverName }) => !this.#isPaused(serverName));
    const missing = this.#exceptMissing(await this.#fetchFromOwners(due, purpose));
    if (purpose === 'request' && missing.length > 0)
      await this.#limits.request.run(() => this.#fetchFromNotaries(missing));
  }

  /** Requests the keys from their owners. @returns keys that are still missing */
  async #fetchFromOwners(
    wantedKeys: readonly WantedKey[],
    purpose: KeyPurpose,
  ): Promise<readonly WantedKey[]> {
    const byServer = Map.groupBy(wantedKeys, ({ serverName }) => serverName);
    const missingByServer = await Promise.all(
      [...byServer].map(async ([serverName, wantedOfServer]) => {
        const response = await this.#fetchFromOwnerOnce(serverName, wantedOfServer, purpose);
        return wantedOfServer.filter((wanted) => !answers(response, wanted));
      }),
    );
    return missingByServer.flat();
  }

  /** Concurrent callers share one request. Each purpose waits for a slot of its own limit. */
  #fetchFromOwnerOnce(
    serverName: string,
    wantedKeys: readonly WantedKey[],
    purpose: KeyPurpose,
  ): Promise<KeyResponse | undefined> {
    const key = `${purpose} ${serverName}`;
    const shared = this.#running.get(serverName) ?? this.#waiting.get(key);
    if (shared !== undefined) return shared;
    const fetchUnlessPaused = async () =>
      this.#isPaused(serverName)
        ? undefined
        : this.#running.run(serverName, () => this.#fetchFromOwner(serverName, wantedKeys));
    if (this.#isPaused(serverName)) return Promise.resolve(undefined);
    return this.#waiting.run(key, () => this.#limits[purpose].run(fetchUnlessPaused));
  }

  async #fetchFromOwner(
    serverName: string,
    wantedKeys: readonly WantedKey[],
  ): Promise<KeyResponse | undefined> {
    const { requests, clock, log, save } = this.#deps;
    let response: KeyResponse | undefined;
    try {
      response = await fetchFromOwner(requests, serverName, clock.now());
      if (response !== undefined) await save(response, true);
      else log.info({ server: serverName }, 'A server sent an invalid response with its keys');
    } catch (error) {
      log.info({ err: error, server: serverName }, 'Could not fetch the keys of a server');
    }
    if (wantedKeys.some((wanted) => answers(response, wanted))) this.#countHelpful(serverName);
    else this.#pause(serverName, response !== undefined);
    return response;
  }

  #isPaused(serverName: string): boolean {
    return (this.#pauses.get(serverName)?.until ?? 0) > this.#deps.clock.now();
  }

  #pause(serverName: string, hasResponse: boolean): void {
    const before = this.#pauses.get(serverName)?.length ?? minPause / 2;
    const length = hasResponse ? minPause : Math.min(2 * before, maxPause);
    const now = this.#deps.clock.now();
    this.#pauses.set(serverName, { until: now + length, length, since: now, helpful: 0 });
  }

  /**
   * Counts a response with a wanted key. Pauses requests to the server only after `maxHelpful` such responses, because
   * the keys of a server that has rotated them may be needed again at once.
   */
  #countHelpful(serverName: string): void {
    const now = this.#deps.clock.now();
    const before = this.#pauses.get(serverName);
    const isWithinPause = before !== undefined && now < before.since + minPause;
    const since = isWithinPause ? before.since : now;
    const helpful = isWithinPause ? before.helpful + 1 : 1;
    const until = helpful >= maxHelpful ? since + minPause : now;
    this.#pauses.set(serverName, { until, length: minPause, since, helpful });
  }

  /** Returns the wanted keys, except keys that the notaries lacked within the last `missingPause`. */
  #exceptMissing(wantedKeys: readonly WantedKey[]): readonly WantedKey[] {
    const now = this.#deps.clock.now();
    return wantedKeys.filter((wanted) => (this.#missing.get(nameOf(wanted)) ?? 0) <= now);
  }

  /**
   * Requests the keys from all notaries at once. Waits until every key is found, or all notaries have responded.
   * @returns the wanted keys that notaries had
   */
  async #fetchFromNotaries(wantedKeys: readonly WantedKey[]): Promise<ReadonlySet<WantedKey>> {
    const { notaries, clock } = this.#deps;
    const foundKeys = new Set<WantedKey>();
    if (wantedKeys.length === 0 || notaries.length === 0) return foundKeys;
    const { promise: allFound, resolve } = Promise.withResolvers<void>();
    const fetches = notaries.map(async (notary) => {
      for (const { serverName, keys } of await this.#fetchFromNotary(notary, wantedKeys)) {
        for (const wanted of wantedKeys) {
          if (wanted.serverName === serverName && satisfies(keys.get(wanted.keyId), wanted))
            foundKeys.add(wanted);
        }
      }
      if (foundKeys.size === wantedKeys.length) resolve();
    });
    await Promise.race([allFound, Promise.all(fetches)]);
    for (const wanted of wantedKeys) {
      if (!foundKeys.has(wanted)) this.#missing.set(nameOf(wanted), clock.now() + missingPause);
    }
    return foundKeys;
  }

  async #fetchFromNotary(
    notary: KeyServer,
    wantedKeys: readonly WantedKey[],
  ): Promise<readonly KeyResponse[]> {
    const { requests, clock, log, save } = this.#deps;
    try {
      const responses = await fetchFromNotary(requests, notary, wantedKeys, clock.now());
      for (const response of responses) await save(response, false);
      return responses;
    } catch (error) {
      log.info({ err: error, server: notary.server_name }, 'Could not fetch keys from a notary');
      return [];
    }
  }
}

const answers = (response: KeyResponse | undefined, wanted: WantedKey) =>
  response !== undefined && (wanted.keyId === anyKey || satisfies(response.keys.get(wanted.keyId), wanted));

const nameOf = ({ serverName, keyId }: WantedKey) => `${serverName} ${keyId}`;
