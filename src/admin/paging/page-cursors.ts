import { hash } from 'node:crypto';
import { type Cache, type CacheRegistry, KiB } from '../../kernel/caches/index.ts';

/** The last row of a page: its value in the sort order, and its unique key. */
export interface Cursor {
  readonly value: string | number;
  readonly key: string | number;
}

/** Where a page begins: after a known row, or at an offset. */
export type PageStart = { readonly after: Cursor } | { readonly offset: number };

/** Identifies the list that a page is part of: cursors of one list are not used for another. */
export interface ListIdentity {
  readonly administrator: string;
  /** Names the list, its filters and its order. */
  readonly list: string;
}

/** Maximum number of pages whose last rows are cached; other pages are found by their offset. */
const maxPages = 1_000;

/**
 * Caches the last row of each page and the total number of rows, for lists whose `from` parameter is an offset. Rows
 * that are added or deleted between two requests then cause neither repeated nor skipped rows. A page without a cached
 * row, for instance after a restart, is found by its offset.
 */
export class PageCursors {
  /** Last rows by `keyOf`; totals, as the value of a cursor, by `totalKeyOf`. */
  readonly #cursors: Cache<string, Cursor>;

  constructor(caches: CacheRegistry) {
    this.#cursors = caches.create('admin_pages', {
      size: maxPages,
      maxBytes: 512 * KiB,
      sizeOf: (cursor) => 100 + 2 * String(cursor.value).length + 2 * String(cursor.key).length,
    });
  }

  /** Returns where the page with the parameter `from` begins. */
  startOf(listed: ListIdentity, from: number): PageStart {
    const after = from === 0 ? undefined : this.#cursors.get(keyOf(listed, from));
    return after ? { after } : { offset: from };
  }

  /** Returns the number of rows that the first page of a list has counted, if it is cached. */
  totalOf(listed: ListIdentity): number | undefined {
    const cached = this.#cursors.get(totalKeyOf(listed));
    return cached && Number(cached.value);
  }

  /** Caches the number of rows on all pages of a list. */
  rememberTotal(listed: ListIdentity, total: number): void {
    this.#cursors.set(totalKeyOf(listed), { value: total, key: '' });
  }

  /** Caches the last row before the page with the parameter `from`. */
  remember(listed: ListIdentity, from: number, last: Cursor): void {
    this.#cursors.set(keyOf(listed, from), last);
  }
}

/** Returns the cache key of a total. The key contains a hash of the filters, because these may be long. */
const totalKeyOf = ({ administrator, list }: ListIdentity) =>
  `${administrator} total ${hash('sha256', list, 'base64url')}`;

/** Returns the cache key of the last row before the page with the parameter `from`. */
const keyOf = ({ administrator, list }: ListIdentity, from: number) =>
  `${administrator} ${from} ${hash('sha256', list, 'base64url')}`;
