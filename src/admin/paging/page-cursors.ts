import { type Cache, type CacheRegistry, KiB } from '../../kernel/caches/index.ts';

/** The last row of a page: its value of the order, and its key, which is unique. */
export interface Cursor {
  readonly value: string | number;
  readonly key: string | number;
}

/** Where a page begins: after a row, or after a number of rows. */
export type PageStart = { readonly after: Cursor } | { readonly offset: number };

/** The list that a page is part of: equal lists have equal pages. */
export interface ListedBy {
  readonly administrator: string;
  /** Names the list, its filters and its order. */
  readonly list: string;
}

/** Maximum number of pages whose ends are remembered; the others are found by counting rows. */
const maxPages = 1_000;

/**
 * Remembers the last row of each page whose next page is named by a number, so that rows which are added or deleted
 * between two requests neither repeat others nor hide them. After a restart, pages are found by counting rows.
 */
export class PageCursors {
  readonly #cursors: Cache<string, Cursor>;

  constructor(caches: CacheRegistry) {
    this.#cursors = caches.create('admin_pages', {
      size: maxPages,
      maxBytes: 512 * KiB,
      sizeOf: (cursor) => 100 + 2 * String(cursor.value).length + 2 * String(cursor.key).length,
    });
  }

  /** Returns where the page named `from` begins. */
  startOf(listed: ListedBy, from: number): PageStart {
    const after = from === 0 ? undefined : this.#cursors.get(keyOf(listed, from));
    return after ? { after } : { offset: from };
  }

  /** Remembers the last row before the page that is named `from`. */
  remember(listed: ListedBy, from: number, last: Cursor): void {
    this.#cursors.set(keyOf(listed, from), last);
  }
}

const keyOf = ({ administrator, list }: ListedBy, from: number) => `${administrator} ${from} ${list}`;
