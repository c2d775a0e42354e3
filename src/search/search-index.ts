import type { Clock } from '../kernel/clock.ts';
import type { Database, FullText, Statement, TextDocument, TextSearch } from '../kernel/database/index.ts';
import type { Logger } from '../kernel/observability/index.ts';
import { FactBuffer, Follower, type StreamReader } from '../kernel/streams/index.ts';
import { TimeSlices } from '../kernel/time-slices.ts';
import type { RoomReader, StoredEvent } from '../room-engine/index.ts';
import { searchedText } from './searched-text.ts';

/** The name of the full text index of events. */
export const eventTexts = 'event_texts';

export interface SearchIndexDeps {
  readonly database: Database;
  readonly streams: StreamReader;
  readonly clock: Clock;
  readonly log: Logger;
  readonly engine: RoomReader;
}

/**
 * Events per commit. Each commit makes a segment of the index, so few large commits are much cheaper than many small
 * commits. One commit blocks other writers for about ten milliseconds.
 */
const eventsPerCommit = 250;

/** Number of characters after which texts are committed, because the n-grams of one commit are in memory together. */
const charactersPerCommit = 500_000;

/** Milliseconds between two rounds of indexing. A search does not wait this long, but starts the next round at once. */
const interval = 1_000;

/** Updates the full text index of events. It follows the stream of rooms in the background. */
export class SearchIndex {
  readonly #deps: SearchIndexDeps;
  readonly #texts: FullText;
  readonly #follower: Follower;
  readonly #slices: TimeSlices;
  /** Events to be indexed, and redactions. */
  readonly #buffer: FactBuffer<{ readonly stored: StoredEvent; readonly position: number }>;

  constructor(deps: SearchIndexDeps) {
    this.#deps = deps;
    this.#texts = deps.database.fullText(eventTexts);
    this.#slices = new TimeSlices(deps.clock);
    this.#buffer = new FactBuffer(deps.streams);
    deps.engine.stream.subscribe(({ stored }, position) => {
      if (concernsIndex(stored)) this.#buffer.add({ stored, position });
    });
    this.#follower = new Follower(deps, {
      name: 'search/events',
      startAt: 0,
      interval,
      follow: (after, upTo) => this.#follow(after, upTo),
    });
  }

  start(): Promise<void> {
    return this.#follower.start();
  }

  stop(): Promise<void> {
    return this.#follower.stop();
  }

  /** Resolves when all events until now are indexed, or after a timeout. */
  caughtUp(): Promise<void> {
    return this.#follower.caughtUpSoon();
  }

  /** Returns the nids of the events that may match, latest first. @param search with nids of rooms as scopes */
  candidates(search: TextSearch): Promise<number[]> {
    return this.#texts.candidates(search);
  }

  async #follow(after: number, upTo: number): Promise<void> {
    const buffered = this.#buffer.take(after, upTo);
    if (buffered === undefined) return this.#followStored(after, upTo);
    for (let start = 0; start < buffered.length; start += eventsPerCommit) {
      await this.#write(buffered.slice(start, start + eventsPerCommit).map(({ stored }) => stored));
    }
  }

  /** Reads the events in `(after, upTo]` of the stream from the database, and indexes them. */
  async #followStored(after: number, upTo: number): Promise<void> {
    for (let from = after; from < upTo; ) {
      const page = await this.#deps.engine.events.betweenWithBackfill(from, upTo, eventsPerCommit);
      await this.#write(page.map(({ stored }) => stored).filter(concernsIndex));
      from = page.length < eventsPerCommit ? upTo : (page.at(-1)?.position ?? upTo);
      await new Promise(setImmediate);
    }
  }

  async #write(events: readonly StoredEvent[]): Promise<void> {
    let documents: TextDocument[] = [];
    let characters = 0;
    const redacted: number[] = [];
    for (const stored of events) {
      const text = searchedText(stored);
      if (text !== undefined) documents.push({ id: stored.nid, scope: stored.roomNid, text });
      characters += text?.length ?? 0;
      const target = await this.#targetOfRedaction(stored);
      if (target) redacted.push(target.nid);
      if (characters < charactersPerCommit) continue;
      await this.#put(documents);
      documents = [];
      characters = 0;
    }
    await this.#put(documents);
    if (redacted.length > 0) await this.#deps.database.batch(this.#texts.statements([], redacted));
  }

  /**
   * Indexes documents in one commit. Makes the n-grams of the documents with pauses, because the n-grams of a long text
   * take milliseconds.
   */
  async #put(documents: readonly TextDocument[]): Promise<void> {
    const rows: Statement['rows'][number][] = [];
    let sql: string | undefined;
    for (const document of documents) {
      for (const statement of this.#texts.statements([document], [])) {
        sql = statement.sql;
        rows.push(...statement.rows);
      }
      const pause = this.#slices.pauseIfDue();
      if (pause) await pause;
    }
    if (sql !== undefined) await this.#deps.database.batch([{ sql, rows }]);
  }

  async #targetOfRedaction({ nid, event }: StoredEvent): Promise<StoredEvent | undefined> {
    if (event.redacts === undefined) return undefined;
    const target = await this.#deps.engine.events.getById(event.redacts);
    return target?.redactedBy === nid ? target : undefined;
  }
}

const concernsIndex = (stored: StoredEvent) =>
  stored.stream !== undefined &&
  (stored.event.type === 'm.room.redaction' || searchedText(stored) !== undefined);
