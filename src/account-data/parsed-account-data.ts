import { type Cache, type CacheRegistry, MiB, sizeOfJson } from '../kernel/caches/index.ts';
import { LoadOnce } from '../kernel/load-once.ts';
import type { JsonObject } from '../protocol/index.ts';
import type { AccountData } from './account-data.ts';

/** Maximum number of users whose content is cached. */
const maxCachedUsers = 40_000;

interface Parsed<T> {
  readonly value: T;
  /** Stream position of the last change; 0 if the content was never set. */
  readonly position: number;
  /** Estimated bytes. */
  readonly bytes: number;
}

/** How the content of a type is parsed and measured. */
export interface ParsedType<T> {
  readonly type: string;
  /** Must accept any content; receives an empty object when there is none. */
  readonly parse: (content: JsonObject, userId: string) => T;
  /** Estimates the bytes of a value; absent: the estimated bytes of the content. */
  readonly sizeOf?: (value: T) => number;
  /** Maximum bytes of the cache; by default 2 MiB. */
  readonly maxBytes?: number;
}

/** Caches the parsed content of one type of global account data, by user. */
export class ParsedAccountData<T> {
  readonly #accountData: AccountData;
  readonly #type: ParsedType<T>;
  readonly #values: Cache<string, Parsed<T>>;
  readonly #loading = new LoadOnce<string, Parsed<T>>();

  constructor(accountData: AccountData, caches: CacheRegistry, parsedType: ParsedType<T>) {
    const { type, maxBytes = 2 * MiB } = parsedType;
    this.#accountData = accountData;
    this.#type = parsedType;
    this.#values = caches.create<string, Parsed<T>>(`account_data ${type}`, {
      size: maxCachedUsers,
      maxBytes,
      sizeOf: ({ bytes }) => bytes,
    });
    accountData.accountDataStream.subscribe((fact) => {
      if (fact.type !== type || fact.roomId !== undefined) return;
      this.#values.delete(fact.userId);
      // A load that is under way may have read the content before this change.
      this.#loading.forget(fact.userId);
    });
  }

  /** Returns the parsed content of a user; without a promise when the content is in memory. */
  of(userId: string): T | Promise<T> {
    const known = this.#values.get(userId);
    return known ? known.value : this.#read(userId).then(({ value }) => value);
  }

  /**
   * Returns the stream position of the last change of a user's content, 0 if there was none. Returns no promise when
   * the content is in memory.
   */
  changedAt(userId: string): number | Promise<number> {
    const known = this.#values.get(userId);
    return known ? known.position : this.#read(userId).then(({ position }) => position);
  }

  #read(userId: string): Promise<Parsed<T>> {
    const keep = (parsed: Parsed<T>) => this.#values.set(userId, parsed);
    return this.#loading.run(userId, () => this.#load(userId), keep);
  }

  async #load(userId: string): Promise<Parsed<T>> {
    const { type, parse, sizeOf } = this.#type;
    const key = { userId, roomId: undefined, type };
    const { content = {}, position } = await this.#accountData.findWithPosition(key);
    const value = parse(content, userId);
    return { value, position, bytes: sizeOf ? sizeOf(value) : sizeOfJson(content) };
  }
}
