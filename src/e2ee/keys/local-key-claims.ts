import type { Database, Writer } from '../../kernel/database/index.ts';
import { mapConcurrently } from '../../kernel/map-concurrently.ts';
import type { Publish, Stream, StreamWriter } from '../../kernel/streams/index.ts';
import type { E2eeTables } from '../tables.ts';
import { markFallbackKeyUsed, readFallbackKey } from './fallback-key-store.ts';
import {
  claimKeys,
  type DeviceAddress,
  oldestKeyIds,
  readDevicesWithKeys,
  type StoredOneTimeKey,
} from './one-time-key-store.ts';
import type { OneTimeKey } from './one-time-keys.ts';

/** A request for one key of a device. */
export interface KeyRequest extends DeviceAddress {
  readonly algorithm: string;
}

interface Claim extends KeyRequest {
  readonly resolve: (key: OneTimeKey | undefined) => void;
  readonly reject: (error: unknown) => void;
}

/** The claims of keys of the same device and algorithm, in the order of arrival. */
interface ClaimGroup {
  readonly request: KeyRequest;
  readonly claims: Claim[];
  /** Ids of the oldest keys: one per claim, or all keys when there are fewer. */
  ids: readonly number[];
  /** The fallback key; looked up when there are fewer keys than claims. */
  fallback: OneTimeKey | undefined;
}

/** Maximum number of claims in one transaction. */
const maxClaims = 5_000;

/**
 * Maximum number of groups of claims whose keys are searched at once, with a query for each group. When there are more
 * groups, the groups of devices without keys are left out first.
 */
const maxUnfiltered = 50;

/** Maximum number of users in one query. */
const usersPerQuery = 500;

/** Maximum number of concurrent queries for keys. */
const maxConcurrentReads = 20;

const groupNameOf = ({ userId, deviceId, algorithm }: KeyRequest) => `${userId}\0${deviceId}\0${algorithm}`;

/**
 * Returns each one-time key to at most one claim: the key is deleted from the database before the claim resolves.
 * Claims that arrive during a transaction share the next transaction.
 * Source: client-server API, "One-time and fallback keys".
 */
export class LocalKeyClaims {
  readonly #database: Database;
  readonly #streams: StreamWriter;
  readonly #keyStream: Stream<DeviceAddress>;
  #waiting: Claim[] = [];
  #running = false;

  constructor(database: Database, streams: StreamWriter, keyStream: Stream<DeviceAddress>) {
    this.#database = database;
    this.#streams = streams;
    this.#keyStream = keyStream;
  }

  /**
   * Claims the device's oldest key of an algorithm, or else its fallback key. Returns `undefined` when the
   * device has neither.
   */
  claim({ userId, deviceId, algorithm }: KeyRequest): Promise<OneTimeKey | undefined> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ userId, deviceId, algorithm, resolve, reject });
      if (!this.#running) void this.#run();
    });
  }

  async #run(): Promise<void> {
    this.#running = true;
    // Waits for further claims of the same request.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const claims = this.#waiting.splice(0, maxClaims);
      try {
        await this.#settle(claims);
      } catch (error) {
        for (const { reject } of claims) reject(error);
      }
    }
    this.#running = false;
  }

  async #settle(claims: readonly Claim[]): Promise<void> {
    const groups = Object.values(Object.groupBy(claims, groupNameOf)).flatMap((group = []) => {
      const [request] = group;
      return request ? [{ request, claims: group, ids: [], fallback: undefined } satisfies ClaimGroup] : [];
    });
    const candidates = groups.length > maxUnfiltered ? await this.#groupsWithKeys(groups) : groups;
    await mapConcurrently(candidates, maxConcurrentReads, (group) => this.#findKeys(group));
    const claimable = groups.filter(({ ids, fallback }) => ids.length > 0 || fallback);
    const claimedKeys =
      claimable.length === 0
        ? []
        : await this.#streams.write<E2eeTables, StoredOneTimeKey[]>((writer, publish) =>
            this.#takeKeys(writer, publish, claimable),
          );
    const keys = Map.groupBy(claimedKeys, groupNameOf);
    for (const group of groups) this.#resolveClaims(group, keys.get(groupNameOf(group.request)) ?? []);
  }

  /** Returns the groups whose device has keys of the algorithm. */
  async #groupsWithKeys(groups: readonly ClaimGroup[]): Promise<ClaimGroup[]> {
    const userIds = [...new Set(groups.map(({ request }) => request.userId))];
    const namesWithKeys = new Set<string>();
    for (let start = 0; start < userIds.length; start += usersPerQuery) {
      const reader = this.#database.reader<E2eeTables>();
      for (const device of await readDevicesWithKeys(reader, userIds.slice(start, start + usersPerQuery))) {
        namesWithKeys.add(groupNameOf(device));
      }
      await new Promise(setImmediate);
    }
    return groups.filter(({ request }) => namesWithKeys.has(groupNameOf(request)));
  }

  async #findKeys(group: ClaimGroup): Promise<void> {
    const { request, claims } = group;
    const reader = this.#database.reader<E2eeTables>();
    group.ids = await oldestKeyIds(reader, request, request.algorithm, claims.length);
    if (group.ids.length < claims.length) {
      group.fallback = await readFallbackKey(reader, request, request.algorithm);
    }
  }

  async #takeKeys(
    writer: Writer<E2eeTables>,
    publish: Publish,
    groups: readonly ClaimGroup[],
  ): Promise<StoredOneTimeKey[]> {
    const claimedKeys = await claimKeys(
      writer,
      groups.flatMap(({ ids }) => ids),
    );
    for (const { request, ids, fallback } of groups) {
      const isNewlyUsed = fallback !== undefined && (await markFallbackKeyUsed(writer, request, fallback));
      const { userId, deviceId } = request;
      if (ids.length > 0 || isNewlyUsed) publish(this.#keyStream, { userId, deviceId });
    }
    return claimedKeys;
  }

  /**
   * Resolves each claim with its key. Claims whose key was taken or deleted in the meantime are queued again.
   */
  #resolveClaims({ claims, ids, fallback }: ClaimGroup, keys: readonly StoredOneTimeKey[]): void {
    for (const [index, claim] of claims.entries()) {
      const key = keys[index];
      if (key) claim.resolve(key);
      else if (index >= ids.length) claim.resolve(fallback);
      else this.#waiting.push(claim);
    }
  }
}
