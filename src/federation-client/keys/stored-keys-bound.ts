import { sql } from 'kysely';
import { MiB } from '../../kernel/caches/index.ts';
import type { Database, Statement } from '../../kernel/database/index.ts';
import type { KeyTables } from './tables.ts';

/** Maximum stored keys of all servers, and bytes of their responses. */
export interface KeyBounds {
  readonly maxKeys: number;
  readonly maxTextBytes: number;
}

/** More than a server in very many rooms stores: some 100,000 keys, in responses that mostly have less than 1 KiB. */
const defaultBounds: KeyBounds = { maxKeys: 500_000, maxTextBytes: 128 * MiB };

/**
 * When this share of a bound has been added, the rows are counted. If they exceed the bound, rows are deleted until
 * this share of the bound is free.
 */
const slack = 1 / 20;

/** Number of rows that one transaction deletes. */
const chunk = 500;

/** Maximum number of responses that one query reads to delete them. */
const textsAtOnce = 20_000;

const deleteKey = 'delete from server_keys where server_name = ? and key_id = ?';
const deleteText = 'delete from server_key_responses where server_name = ? and response_id = ?';

/**
 * Bounds the stored keys and responses of all servers, because one domain can have any number of server names.
 * Responses are needed only to answer as a notary: the responses that were fetched longest ago are deleted first. Keys
 * that have verified events are deleted last: their servers may be gone, and then the keys cannot be fetched again.
 */
export class StoredKeysBound {
  readonly #database: Database;
  readonly #bounds: KeyBounds;
  /** Number of keys added since the rows were counted. Infinite until the first count. */
  #addedKeys = Number.POSITIVE_INFINITY;
  /** Number of bytes of responses added since the rows were counted. Infinite until the first count. */
  #addedBytes = Number.POSITIVE_INFINITY;

  constructor(database: Database, bounds: KeyBounds = defaultBounds) {
    this.#database = database;
    this.#bounds = bounds;
  }

  /** Must be called after keys and responses were stored. Deletes rows above the bounds. */
  async added(keys: number, textBytes: number): Promise<void> {
    const { maxKeys, maxTextBytes } = this.#bounds;
    this.#addedKeys += keys;
    this.#addedBytes += textBytes;
    if (this.#addedKeys > maxKeys * slack) {
      this.#addedKeys = 0;
      await this.#deleteKeys();
    }
    if (this.#addedBytes > maxTextBytes * slack) {
      this.#addedBytes = 0;
      await this.#deleteTexts();
    }
  }

  async #deleteKeys(): Promise<void> {
    const { maxKeys } = this.#bounds;
    const reader = this.#database.scanner<KeyTables>();
    const count = sql<number | string>`count(*)`.as('count');
    const stored = Number((await reader.selectFrom('server_keys').select(count).executeTakeFirst())?.count);
    if (stored <= maxKeys) return;
    const oldest = reader
      .selectFrom('server_keys')
      .select(['server_name', 'key_id'])
      .orderBy('for_events')
      .orderBy('fetched_ts')
      .limit(Math.ceil(stored - maxKeys * (1 - slack)));
    await this.#delete(
      deleteKey,
      (await oldest.execute()).map((row) => [row.server_name, row.key_id]),
    );
  }

  async #deleteTexts(): Promise<void> {
    const { maxTextBytes } = this.#bounds;
    const reader = this.#database.scanner<KeyTables>();
    const sum = sql<number | string | null>`cast(sum(octet_length(text)) as bigint)`.as('sum');
    const stored = await reader.selectFrom('server_key_responses').select(sum).executeTakeFirst();
    const total = Number(stored?.sum ?? 0);
    if (total <= maxTextBytes) return;
    for (let excess = total - maxTextBytes * (1 - slack); excess > 0; ) {
      const oldest = await reader
        .selectFrom('server_key_responses')
        .select(['server_name', 'response_id', sql<number>`octet_length(text)`.as('bytes')])
        .orderBy('fetched_ts')
        .limit(textsAtOnce)
        .execute();
      if (oldest.length === 0) return;
      const surplus = oldest.filter(({ bytes }) => {
        const isSurplus = excess > 0;
        excess -= bytes;
        return isSurplus;
      });
      await this.#delete(
        deleteText,
        surplus.map((row) => [row.server_name, row.response_id]),
      );
    }
  }

  async #delete(text: string, rows: Statement['rows']): Promise<void> {
    for (let start = 0; start < rows.length; start += chunk)
      await this.#database.batch([{ sql: text, rows: rows.slice(start, start + chunk) }]);
  }
}
