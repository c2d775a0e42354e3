import { type Cache, type CacheRegistry, MiB } from '../../kernel/caches/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import type { ServerKey, ServerKeyLookup } from '../../protocol/index.ts';
import type { FederationClient } from '../requests/federation-client.ts';
import type { KeyServer } from './fetch-keys.ts';
import { KeyFetcher, type KeyPurpose } from './key-fetcher.ts';
import type { KeyResponse } from './key-response.ts';
import type { OwnKeys } from './own-keys.ts';
import {
  type KeyInResponse,
  markForEvents,
  readKey,
  readKeysInResponses,
  readTexts,
  type StoredKey,
  saveResponse,
} from './store.ts';
import { StoredKeysBound } from './stored-keys-bound.ts';
import type { KeyTables } from './tables.ts';
import { anyKey, satisfies, type WantedKey } from './wanted-key.ts';

export interface KeyRingDeps {
  readonly database: Database;
  readonly caches: CacheRegistry;
  readonly clock: Clock;
  readonly log: Logger;
  readonly requests: FederationClient;
  readonly own: OwnKeys;
  /** Notaries: servers that are requested for the keys of other servers. */
  readonly keyServers: readonly KeyServer[];
}

/** Maximum number of keys in memory at cache factor 1. */
const cacheSize = 20_000;

/** The keys of all servers: from memory, the database or the network. */
export class KeyRing {
  readonly #deps: KeyRingDeps;
  /** `null` for keys that are not in the database. */
  readonly #known: Cache<string, StoredKey | null>;
  readonly #bound: StoredKeysBound;
  readonly #fetcher: KeyFetcher;

  constructor(deps: KeyRingDeps) {
    this.#deps = deps;
    this.#known = deps.caches.create('server_keys', {
      size: cacheSize,
      maxBytes: 4 * MiB,
      sizeOf: () => 200,
    });
    this.#bound = new StoredKeysBound(deps.database);
    this.#fetcher = new KeyFetcher({
      ...deps,
      notaries: deps.keyServers.filter(({ server_name }) => server_name !== deps.own.serverName),
      save: (response, isFromOwner) => this.#save(response, isFromOwner),
    });
  }

  /**
   * Returns a key of a server. Fetches the key of another server if the key is unknown, or is not retired and expires
   * before `validUntil`. The result may still expire earlier; the caller must check that.
   */
  async find(wanted: WantedKey, purpose: KeyPurpose): Promise<ServerKey | undefined> {
    const known = await this.#read(wanted);
    if (satisfies(known, wanted) || wanted.serverName === this.#deps.own.serverName) return known;
    await this.#fetcher.fetch([wanted], purpose);
    return this.#read(wanted);
  }

  /** Finds the keys that verify events, fetches missing ones together, and marks the keys as used for events. */
  async findAll(wantedKeys: readonly WantedKey[]): Promise<ServerKeyLookup> {
    const keysByName = new Map<string, (ServerKey & Partial<StoredKey>) | undefined>();
    const readAll = async () => {
      for (const wanted of wantedKeys) keysByName.set(nameOf(wanted), await this.#read(wanted));
    };
    await readAll();
    const { serverName: ownName } = this.#deps.own;
    const missing = wantedKeys.filter(
      (wanted) => wanted.serverName !== ownName && !satisfies(keysByName.get(nameOf(wanted)), wanted),
    );
    if (missing.length > 0) {
      await this.#fetcher.fetch(missing, 'events');
      await readAll();
    }
    await this.#markForEvents(
      wantedKeys.filter((wanted) => keysByName.get(nameOf(wanted))?.isForEvents === false),
    );
    return (serverName, keyId) => keysByName.get(nameOf({ serverName, keyId }));
  }

  /**
   * Requests the keys of a server if a requested key is unknown or the stored response is old. Called before this
   * server answers as a notary.
   * @param wantedKeys the requested keys; an empty list means all
   * @param validUntil required validity when all keys are requested, in milliseconds since the epoch
   * @param mayRequest is called when the stored keys do not suffice, and returns whether a request may be sent to the
   * server
   */
  async refresh(
    serverName: string,
    wantedKeys: readonly Pick<WantedKey, 'keyId' | 'validUntil'>[],
    validUntil: number,
    mayRequest: () => boolean,
  ): Promise<void> {
    const { database, clock } = this.#deps;
    const stored = await readKeysInResponses(database.reader<KeyTables>(), serverName);
    const isKnown = ({ keyId, validUntil: until }: Pick<WantedKey, 'keyId' | 'validUntil'>) =>
      stored.some((one) => (keyId === anyKey || one.keyId === keyId) && isFresh(one, until, clock.now()));
    const wanted = wantedKeys.length > 0 ? wantedKeys : [{ keyId: anyKey, validUntil }];
    const missing = wanted.filter((one) => !isKnown(one));
    if (missing.length === 0 || !mayRequest()) return;
    await this.#fetcher.fetch(
      missing.map((one) => ({ ...one, serverName })),
      'notary',
    );
  }

  /**
   * Returns the stored responses that contain the keys of a server, as the server has signed them. Together they
   * usually have some KiB; `readTexts` says how many and how long they may be.
   * @param keyIds the requested keys; an empty list means all
   */
  async responsesOf(serverName: string, keyIds: readonly string[]): Promise<readonly string[]> {
    const reader = this.#deps.database.reader<KeyTables>();
    const stored = await readKeysInResponses(reader, serverName);
    const requested = new Set(keyIds);
    const matching = stored.filter(({ keyId }) => requested.size === 0 || requested.has(keyId));
    // When none of the requested keys is stored, other keys of the server are returned.
    const chosen = matching.length > 0 ? matching : stored.slice(0, 1);
    return readTexts(reader, serverName, [...new Set(chosen.map(({ responseId }) => responseId))]);
  }

  /**
   * Marks keys as used for events, so that they are deleted last. A failure is only logged, because the caller has the
   * keys already.
   */
  async #markForEvents(keys: readonly WantedKey[]): Promise<void> {
    if (keys.length === 0) return;
    const { database, log } = this.#deps;
    try {
      const rows = keys.map(({ serverName, keyId }) => [serverName, keyId]);
      await database.batch([{ sql: markForEvents, rows }]);
    } catch (error) {
      log.warn({ err: error }, 'The keys of servers could not be marked as used for events');
      return;
    }
    for (const wanted of keys) {
      const known = this.#known.peek(nameOf(wanted));
      if (known) this.#known.set(nameOf(wanted), { ...known, isForEvents: true });
    }
  }

  async #read({
    serverName,
    keyId,
  }: Omit<WantedKey, 'validUntil'>): Promise<(ServerKey & Partial<StoredKey>) | undefined> {
    const { own, database } = this.#deps;
    if (serverName === own.serverName) return own.find(keyId);
    const key = await this.#known.getOrLoad(
      nameOf({ serverName, keyId }),
      async () => (await readKey(database.reader(), serverName, keyId)) ?? null,
    );
    return key ?? undefined;
  }

  async #save(response: KeyResponse, isFromOwner: boolean): Promise<void> {
    const { database, clock, log } = this.#deps;
    const savedKeys = await database.transaction<KeyTables, ReadonlyMap<string, ServerKey>>((writer) =>
      saveResponse(writer, response, isFromOwner, clock.now()),
    );
    for (const [keyId, key] of savedKeys) {
      const name = nameOf({ ...response, keyId });
      this.#known.set(name, { ...key, isForEvents: this.#known.peek(name)?.isForEvents ?? false });
    }
    try {
      await this.#bound.added(savedKeys.size, savedKeys.size > 0 ? response.text.length : 0);
    } catch (error) {
      log.warn({ err: error }, 'The oldest stored keys of other servers could not be deleted');
    }
  }
}

/** Names a key in maps. The names are unique, because neither server names nor key ids contain spaces. */
const nameOf = ({ serverName, keyId }: Omit<WantedKey, 'validUntil'>) => `${serverName} ${keyId}`;

/**
 * Whether a notary may answer with a stored key without requesting it again: the key is retired or valid for long
 * enough, and less than half of the validity of its response is over. Source: server-server API,
 * `GET /_matrix/key/v2/server`.
 */
function isFresh(
  { validUntilTs, fetchedTs, isRetired }: KeyInResponse,
  validUntil: number,
  now: number,
): boolean {
  const isValid = isRetired || validUntilTs >= Math.max(validUntil, now);
  return isValid && now - fetchedTs < (validUntilTs - fetchedTs) / 2;
}
