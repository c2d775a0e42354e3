import type { Database, Writer } from '../../kernel/database/index.ts';
import type { Publish, Stream, StreamWriter } from '../../kernel/streams/index.ts';
import type { E2eeTables } from '../tables.ts';
import { markFallbackKeyUsed, readFallbackKey } from './fallback-key-store.ts';
import { claimKeys, type DeviceAddress, oldestKeyIds, type StoredOneTimeKey } from './one-time-key-store.ts';
import type { OneTimeKey } from './one-time-keys.ts';

/** Asks for one key of a device. */
export interface KeyRequest extends DeviceAddress {
  readonly algorithm: string;
}

interface Claim extends KeyRequest {
  readonly resolve: (key: OneTimeKey | undefined) => void;
  readonly reject: (error: unknown) => void;
}

/** The claims of one kind of key of one device, first come first. */
interface Demand {
  readonly wish: KeyRequest;
  readonly claims: Claim[];
  /** The oldest keys, as many as there are claims, or all that there are. */
  ids: readonly number[];
  /** Read when there are fewer keys than claims. */
  fallback: OneTimeKey | undefined;
}

/** How many claims share a transaction. */
const maxAtOnce = 5_000;

const nameOf = ({ userId, deviceId, algorithm }: KeyRequest) => `${userId}\0${deviceId}\0${algorithm}`;

/**
 * Hands out one-time keys, each at most once: it is deleted from the disk before anybody learns of it. Claims that come
 * while a transaction is under way share the next one.
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

  /** The device's oldest key of that algorithm, or else its fallback key; `undefined` when it has neither. */
  claim({ userId, deviceId, algorithm }: KeyRequest): Promise<OneTimeKey | undefined> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ userId, deviceId, algorithm, resolve, reject });
      if (!this.#running) void this.#run();
    });
  }

  async #run(): Promise<void> {
    this.#running = true;
    await Promise.resolve(); // what the same request still asks for comes along
    while (this.#waiting.length > 0) {
      const claims = this.#waiting.splice(0, maxAtOnce);
      try {
        await this.#settle(claims);
      } catch (error) {
        for (const { reject } of claims) reject(error);
      }
    }
    this.#running = false;
  }

  async #settle(claims: readonly Claim[]): Promise<void> {
    const demands = Object.values(Object.groupBy(claims, nameOf)).flatMap((group = []) => {
      const [wish] = group;
      return wish ? [{ wish, claims: group, ids: [], fallback: undefined } satisfies Demand] : [];
    });
    await Promise.all(demands.map((demand) => this.#find(demand)));
    const found = demands.filter(({ ids, fallback }) => ids.length > 0 || fallback);
    const taken =
      found.length === 0
        ? []
        : await this.#streams.write<E2eeTables, StoredOneTimeKey[]>((writer, publish) =>
            this.#take(writer, publish, found),
          );
    const keys = Map.groupBy(taken, nameOf);
    for (const demand of demands) this.#answer(demand, keys.get(nameOf(demand.wish)) ?? []);
  }

  async #find(demand: Demand): Promise<void> {
    const { wish, claims } = demand;
    const reader = this.#database.reader<E2eeTables>();
    demand.ids = await oldestKeyIds(reader, wish, wish.algorithm, claims.length);
    if (demand.ids.length < claims.length) {
      demand.fallback = await readFallbackKey(reader, wish, wish.algorithm);
    }
  }

  async #take(
    writer: Writer<E2eeTables>,
    publish: Publish,
    demands: readonly Demand[],
  ): Promise<StoredOneTimeKey[]> {
    const taken = await claimKeys(
      writer,
      demands.flatMap(({ ids }) => ids),
    );
    for (const { wish, ids, fallback } of demands) {
      const isNewlyUsed = fallback !== undefined && (await markFallbackKeyUsed(writer, wish, fallback));
      const { userId, deviceId } = wish;
      if (ids.length > 0 || isNewlyUsed) publish(this.#keyStream, { userId, deviceId });
    }
    return taken;
  }

  /** Gives each claim its key. Those that another process was faster for ask again. */
  #answer({ claims, ids, fallback }: Demand, keys: readonly StoredOneTimeKey[]): void {
    for (const [index, claim] of claims.entries()) {
      const key = keys[index];
      if (key) claim.resolve(key);
      else if (index >= ids.length) claim.resolve(fallback);
      else this.#waiting.push(claim);
    }
  }
}
