import type { Clock } from '../kernel/clock.ts';
import type { Database, FullText, TextDocument, TextSearch } from '../kernel/database/index.ts';
import type { Logger } from '../kernel/observability/index.ts';
import { Follower, type StreamReader } from '../kernel/streams/index.ts';
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

/** Milliseconds between two rounds of indexing. A search does not wait this long, but starts the next round at once. */
const interval = 1_000;

/** Updates the full text index of events. It follows the stream of rooms in the background. */
export class SearchIndex {
  readonly #deps: SearchIndexDeps;
  readonly #texts: FullText;
  readonly #follower: Follower;
  /** A position on the stream: later events are collected in memory, earlier events must be read from the database. */
  readonly #bufferedFrom: number;
  /** Events to be indexed, in their order. */
  #pending: StoredEvent[] = [];

  constructor(deps: SearchIndexDeps) {
    this.#deps = deps;
    this.#texts = deps.database.fullText(eventTexts);
    this.#bufferedFrom = deps.streams.current;
    this.#follower = new Follower(deps, {
      name: 'search/events',
      startAt: 0,
      interval,
      follow: (after, upTo) => this.#follow(after, upTo),
    });
  }

  start(): Promise<void> {
    this.#deps.engine.stream.subscribe(({ stored }) => {
      if (concernsIndex(stored)) this.#pending.push(stored);
    });
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
    const { events } = this.#deps.engine;
    for (let from = after; from < this.#bufferedFrom; ) {
      const page = await events.betweenWithBackfill(
        from,
        Math.min(upTo, this.#bufferedFrom),
        eventsPerCommit,
      );
      await this.#write(page.map(({ stored }) => stored).filter(concernsIndex));
      from =
        page.length < eventsPerCommit ? this.#bufferedFrom : (page.at(-1)?.position ?? this.#bufferedFrom);
      await new Promise(setImmediate);
    }
    while (this.#pending.length > 0) {
      const next = this.#pending.slice(0, eventsPerCommit);
      await this.#write(next);
      this.#pending.splice(0, next.length);
    }
  }

  async #write(events: readonly StoredEvent[]): Promise<void> {
    const documents: TextDocument[] = [];
    const redacted: number[] = [];
    for (const stored of events) {
      const text = searchedText(stored);
      if (text !== undefined) documents.push({ id: stored.nid, scope: stored.roomNid, text });
      const target = await this.#targetOfRedaction(stored);
      if (target) redacted.push(target.nid);
    }
    if (documents.length === 0 && redacted.length === 0) return;
    await this.#deps.database.batch(this.#texts.statements(documents, redacted));
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
