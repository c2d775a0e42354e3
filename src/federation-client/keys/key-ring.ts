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
import { readKey, readResponses, type StoredResponse, saveResponse } from './store.ts';
import type { KeyTables } from './tables.ts';
import { anyKey, satisfies, type WantedKey } from './wanted-key.ts';

export interface KeyRingDeps {
  readonly database: Database;
  readonly caches: CacheRegistry;
  readonly clock: Clock;
  readonly log: Logger;
  readonly requests: FederationClient;
  readonly own: OwnKeys;
  /** Notaries: servers that are asked for the keys of others. */
  readonly keyServers: readonly KeyServer[];
}

/** Maximum number of keys in memory at cache factor 1. */
const cacheSize = 20_000;

/** The keys of all servers: from memory, the database or the network. */
export class KeyRing {
  readonly #deps: KeyRingDeps;
  /** `null` for keys that are not in the database. */
  readonly #known: Cache<string, ServerKey | null>;
  readonly #fetcher: KeyFetcher;

  constructor(deps: KeyRingDeps) {
    this.#deps = deps;
    this.#known = deps.caches.create('server_keys', {
      size: cacheSize,
      maxBytes: 4 * MiB,
      sizeOf: () => 200,
    });
    this.#fetcher = new KeyFetcher({
      ...deps,
      notaries: deps.keyServers.filter(({ server_name }) => server_name !== deps.own.serverName),
      save: (response, isFromOwner) => this.#save(response, isFromOwner),
    });
  }

  /**
   * Returns a key of a server. Fetches it when it is unknown or expires before `validUntil`. The result may
   * still expire earlier; the caller must check that.
   */
  async find(wanted: WantedKey, purpose: KeyPurpose): Promise<ServerKey | undefined> {
    const known = await this.#read(wanted);
    if (satisfies(known, wanted) || wanted.serverName === this.#deps.own.serverName) return known;
    await this.#fetcher.fetch([wanted], purpose);
    return this.#read(wanted);
  }

  /** Finds many keys and fetches missing ones together. Used for events: see `isSignedByServer`. */
  async findAll(wantedKeys: readonly WantedKey[]): Promise<ServerKeyLookup> {
    const found = new Map<string, ServerKey | undefined>();
    const readAll = async () => {
      for (const wanted of wantedKeys) found.set(nameOf(wanted), await this.#read(wanted));
    };
    await readAll();
    const { serverName: ownName } = this.#deps.own;
    const missing = wantedKeys.filter(
      (wanted) => wanted.serverName !== ownName && !satisfies(found.get(nameOf(wanted)), wanted),
    );
    if (missing.length > 0) {
      await this.#fetcher.fetch(missing, 'events');
      await readAll();
    }
    return (serverName, keyId) => found.get(nameOf({ serverName, keyId }));
  }

  /**
   * Returns the published keys of a server, as signed by it, for answering as a notary. Asks the server again
   * when a requested key is unknown or the stored response is old.
   * @param wantedKeys the requested keys; an empty list means all
   * @param validUntil required validity when all keys are requested, in milliseconds since the epoch
   */
  async responsesOf(
    serverName: string,
    wantedKeys: readonly Pick<WantedKey, 'keyId' | 'validUntil'>[],
    validUntil: number,
  ): Promise<readonly string[]> {
    const { database, clock } = this.#deps;
    const read = () => readResponses(database.reader<KeyTables>(), serverName);
    let kept = await read();
    const keyIds = new Set(wantedKeys.map(({ keyId }) => keyId));
    const asked = () => kept.filter(({ keyId }) => keyIds.size === 0 || keyIds.has(keyId));
    const isKnown = ({ keyId, validUntil: until }: Pick<WantedKey, 'keyId' | 'validUntil'>) =>
      kept.some((one) => (keyId === anyKey || one.keyId === keyId) && isFresh(one, until, clock.now()));
    const wanted = wantedKeys.length > 0 ? wantedKeys : [{ keyId: anyKey, validUntil }];
    const missing = wanted.filter((one) => !isKnown(one));
    if (missing.length > 0) {
      const ofServer = missing.map((one) => ({ ...one, serverName }));
      await this.#fetcher.fetch(ofServer, 'notary');
      kept = await read();
    }
    // Without any requested key, return the other keys of the server.
    const responses = asked().length > 0 ? asked() : kept.slice(0, 1);
    return [...new Set(responses.map(({ text }) => text))];
  }

  async #read({ serverName, keyId }: Omit<WantedKey, 'validUntil'>): Promise<ServerKey | undefined> {
    const { own, database } = this.#deps;
    if (serverName === own.serverName) return own.find(keyId);
    const key = await this.#known.getOrLoad(
      nameOf({ serverName, keyId }),
      async () => (await readKey(database.reader(), serverName, keyId)) ?? null,
    );
    return key ?? undefined;
  }

  async #save(response: KeyResponse, isFromOwner: boolean): Promise<void> {
    const { database, clock } = this.#deps;
    const taken = await database.transaction<KeyTables, ReadonlyMap<string, ServerKey>>((writer) =>
      saveResponse(writer, response, isFromOwner, clock.now()),
    );
    for (const [keyId, key] of taken) this.#known.set(nameOf({ ...response, keyId }), key);
  }
}

/** Neither server names nor key ids contain spaces. */
const nameOf = ({ serverName, keyId }: Omit<WantedKey, 'validUntil'>) => `${serverName} ${keyId}`;

/**
 * A response is passed on until half of its validity is over. Source: server-server API, `GET
 * /_matrix/key/v2/server`.
 */
function isFresh(
  { validUntilTs, fetchedTs, isRetired }: StoredResponse,
  validUntil: number,
  now: number,
): boolean {
  const isValid = isRetired || validUntilTs >= Math.max(validUntil, now);
  return isValid && now - fetchedTs < (validUntilTs - fetchedTs) / 2;
}
