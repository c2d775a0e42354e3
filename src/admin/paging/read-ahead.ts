import { type Cache, type CacheRegistry, MiB } from '../../kernel/caches/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { PageStart } from './page-cursors.ts';
import type { OrderedRow } from './read-page.ts';

/** Consecutive rows of a list, in the order of the list. */
interface RowsAhead {
  readonly rows: readonly OrderedRow<object>[];
  /** Whether the list ends with the last row. */
  readonly isEnd: boolean;
  /** Milliseconds since the epoch. */
  readonly readAt: number;
}

/** Maximum number of rows that are read at once, unless a page is longer. */
const rowsAtOnce = 2_000;

/** Milliseconds for which pages are taken from rows that were read ahead. */
const maxAge = 60_000;

/** Estimated bytes of a list without its rows. */
const listBytes = 100;

/** Estimated bytes of a row without its key. */
const rowBytes = 150;

/** Estimates the bytes of a list in memory: a text takes at most two bytes for each of its UTF-16 units. */
const sizeOf = ({ rows }: RowsAhead) =>
  rows.reduce((sum, row) => sum + rowBytes + 2 * String(row.cursor_key).length, listBytes);

/**
 * Caches the keys of many rows after a page, so that most of the next pages are read without computing the order again.
 * For lists whose order is computed from many rows.
 */
export class ReadAhead {
  readonly #clock: Clock;
  readonly #lists: Cache<string, RowsAhead>;

  constructor({ caches, clock }: { readonly caches: CacheRegistry; readonly clock: Clock }) {
    this.#clock = clock;
    this.#lists = caches.create('admin_rows_ahead', { maxBytes: 2 * MiB, sizeOf });
  }

  /**
   * Returns the rows of a page, and perhaps rows after the page.
   * @param list names the list, its filters and its order
   * @param read reads at most `limit` rows from the same start
   */
  async rows(
    list: string,
    { start, limit }: { readonly start: PageStart; readonly limit: number },
    read: (limit: number) => Promise<readonly OrderedRow<object>[]>,
  ): Promise<readonly OrderedRow<object>[]> {
    const known = this.#lists.get(list);
    if ('after' in start && known && this.#clock.now() < known.readAt + maxAge) {
      const { key, value } = start.after;
      const last = known.rows.findIndex((row) => row.cursor_key === key && row.cursor_value === value);
      const following = known.rows.slice(last + 1, last + 1 + limit);
      if (last >= 0 && (following.length === limit || known.isEnd)) return following;
    }
    const readAt = this.#clock.now();
    const wanted = Math.max(limit, rowsAtOnce);
    const rows = await read(wanted);
    this.#lists.set(list, { rows, isEnd: rows.length < wanted, readAt });
    return rows;
  }
}
