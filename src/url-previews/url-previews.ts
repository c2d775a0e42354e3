import type { Cache, CacheRegistry } from '../kernel/caches/index.ts';
import type { Clock } from '../kernel/clock.ts';
import { CountByKey } from '../kernel/count-by-key.ts';
import type { Database } from '../kernel/database/index.ts';
import { LoadOnce } from '../kernel/load-once.ts';
import type { RateLimiter } from '../kernel/rate-limits/index.ts';
import { invalidParam, type JsonObject, limitExceeded, MatrixError } from '../protocol/index.ts';
import type { PreviewMaker } from './preview-maker.ts';
import * as store from './store.ts';
import type { UrlPreviewTables } from './tables.ts';

export interface UrlPreviewsDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly caches: CacheRegistry;
  readonly maker: PreviewMaker;
  /** Limits how many previews are made for one user. */
  readonly limit: RateLimiter;
}

const hour = 3_600_000;

/** Hours that a preview is stored, for requests with an earlier `ts`. */
export const hoursStored = 48;

/** Maximum number of rows that are deleted in one transaction. */
const rowsAtOnce = 500;

/** Maximum number of previews that are made at the same time for all users. */
const maxRunning = 50;

/** Maximum number of previews that are made at the same time for one user. */
const maxRunningOfUser = 20;

/** Milliseconds that the failure of a URL is cached. */
const failureTime = 5 * 60_000;

/** Maximum number of cached failures. */
const maxFailures = 1_000;

/** Maximum estimated bytes of all cached failures. */
const maxFailureBytes = 400_000;

/** Estimated bytes of a cached failure without its URL. */
const failureBytes = 300;

interface Failure {
  /** When the fetch failed, in milliseconds since the epoch. */
  readonly at: number;
  readonly error: MatrixError;
}

/**
 * Previews of URLs, shared by all users: each URL is fetched at most once an hour, or every five minutes while it
 * fails.
 */
export class UrlPreviews {
  readonly #deps: UrlPreviewsDeps;
  readonly #running = new LoadOnce<string, JsonObject>();
  /** Number of previews that are being made, by the user who has requested them first. */
  readonly #runningOfUsers = new CountByKey<string>();
  readonly #failures: Cache<string, Failure>;

  constructor(deps: UrlPreviewsDeps) {
    this.#deps = deps;
    this.#failures = deps.caches.create('url_preview_failures', {
      maxBytes: maxFailureBytes,
      size: maxFailures,
      sizeOf: (_, url) => 2 * url.length + failureBytes,
      isExpired: ({ at }) => deps.clock.now() - at >= failureTime,
    });
  }

  /**
   * Returns the preview of a URL. Stored previews do not count towards the limits of the user.
   * @param at the time of the requested preview, in milliseconds since the epoch; now when absent
   * @throws MatrixError M_INVALID_PARAM for a URL that is not http or https; M_LIMIT_EXCEEDED; errors of fetching
   */
  async preview(userId: string, text: string, at?: number): Promise<JsonObject> {
    const url = URL.parse(text);
    if (url === null || !['http:', 'https:'].includes(url.protocol) || text.includes('\0'))
      throw invalidParam('The URL must begin with http:// or https://');
    url.hash = '';
    const { database, clock } = this.#deps;
    const currentHour = Math.floor(clock.now() / hour);
    const requestedHour = Math.min(currentHour, at === undefined ? currentHour : Math.floor(at / hour));
    const stored = await store.readPreview(database.reader(), url.href, requestedHour);
    if (stored !== undefined && (stored.hour === requestedHour || requestedHour < currentHour))
      return JSON.parse(stored.response) as JsonObject;
    return this.#makeOnce(userId, url, currentHour);
  }

  /** Deletes previews that are too old. */
  async deleteOld(): Promise<void> {
    const { database, clock } = this.#deps;
    const before = Math.floor(clock.now() / hour) - hoursStored;
    for (let deleted = rowsAtOnce; deleted === rowsAtOnce; ) {
      deleted = await database.transaction<UrlPreviewTables, number>((writer) =>
        store.deletePreviews(writer, before, rowsAtOnce),
      );
    }
  }

  /**
   * Makes a preview once for all concurrent requests for its URL. @throws MatrixError M_LIMIT_EXCEEDED, cached failures
   */
  #makeOnce(userId: string, url: URL, currentHour: number): Promise<JsonObject> {
    const key = url.href;
    const failure = this.#failures.get(key);
    if (failure !== undefined) throw failure.error;
    const running = this.#running.get(key);
    if (running !== undefined) return running;
    const runningOfUsers = this.#runningOfUsers;
    // Allows a user no more running previews than there are free places, so that a few users cannot block all other
    // users.
    const allowed = Math.min(maxRunningOfUser, maxRunning - this.#running.size);
    if (runningOfUsers.of(userId) >= allowed) throw limitExceeded(1_000);
    this.#deps.limit.take(userId);
    return this.#running.run(key, () =>
      runningOfUsers.during(userId, () => this.#make(userId, url, currentHour)),
    );
  }

  async #make(userId: string, url: URL, currentHour: number): Promise<JsonObject> {
    const { database, clock, maker } = this.#deps;
    // Another request may have stored the preview in the meantime.
    const stored = await store.readPreview(database.reader(), url.href, currentHour);
    if (stored?.hour === currentHour) return JSON.parse(stored.response) as JsonObject;
    try {
      const preview = await maker.make(userId, url);
      await database.transaction<UrlPreviewTables, void>((writer) =>
        store.storePreview(writer, url.href, currentHour, JSON.stringify(preview)),
      );
      return preview;
    } catch (error) {
      if (error instanceof MatrixError && error.status !== 429)
        this.#failures.set(url.href, { at: clock.now(), error });
      throw error;
    }
  }
}
