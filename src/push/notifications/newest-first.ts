import type { RoomHead, RoomReader, StoredEvent, UserRoom } from '../../room-engine/index.ts';

/** An event and the room that it is in. */
export interface EventInRoom {
  readonly head: RoomHead;
  readonly stored: StoredEvent;
}

/** One of the rooms: its events that were loaded but not returned yet. */
interface Source {
  readonly room: UserRoom;
  /**
   * An upper bound: the events of the room that were not returned yet have this position on the stream, or a lower one.
   */
  upTo: number;
  /** `undefined` until the first events are loaded. */
  head: RoomHead | undefined;
  /** Newest first. */
  events: StoredEvent[];
  /** Whether there may be further events to load. */
  hasMore: boolean;
  /** Number of events to load next. */
  pageSize: number;
}

/** Number of events of a room that are loaded together at first; each further page has twice as many, up to `maxPage`. */
const firstPage = 5;

/** Maximum number of events of a room that are loaded together. */
const maxPage = 20;

/**
 * Iterates over the events that were sent to a user's joined rooms since the user joined, and over the user's invites,
 * newest first. Loads the events of a room only when one of them may be the next event.
 */
export class NewestFirst {
  readonly #engine: RoomReader;
  readonly #isShown: (invite: StoredEvent) => Promise<boolean>;
  /** The rooms whose first events were loaded, or are loaded next. */
  readonly #opened = new Set<Source>();
  /** The other rooms, in the order of their newest events: the room with the newest event is the last. */
  readonly #unopened: Source[];
  /** The position of the last returned event: all newer events were returned. */
  #position: number;
  #loadedCount = 0;

  private constructor(
    engine: RoomReader,
    sources: Source[],
    before: number,
    isShown: (invite: StoredEvent) => Promise<boolean>,
  ) {
    this.#engine = engine;
    this.#unopened = sources.sort((one, other) => one.upTo - other.upTo);
    this.#position = before;
    this.#isShown = isShown;
  }

  /**
   * Opens the iteration over the events of a user before a position.
   * @param before a position on the stream, exclusive
   * @param isShown whether the user's invite permissions let them see an invite
   */
  static async open(
    engine: RoomReader,
    userId: string,
    before: number,
    isShown: (invite: StoredEvent) => Promise<boolean>,
  ): Promise<NewestFirst> {
    const rooms = [...(await engine.userRooms.of(userId)).values()];
    const joined = rooms.filter(({ membership }) => membership === 'join');
    const newest = await engine.events.newestPositions(joined.map(({ roomNid }) => roomNid));
    const sources: Source[] = [];
    const add = (room: UserRoom, upTo: number) =>
      sources.push({ room, upTo, head: undefined, events: [], hasMore: true, pageSize: firstPage });
    for (const room of rooms) {
      const { membership, stream, roomNid } = room;
      const position = newest.get(roomNid) ?? 0;
      if (membership === 'join' && position > stream) add(room, Math.min(position, before - 1));
      // An out-of-band invite has no position on a timeline: the position of the membership counts.
      if (membership === 'invite' && stream < before) add(room, stream);
    }
    return new NewestFirst(engine, sources, before, isShown);
  }

  /** The position of the last returned event; at first the position where the iteration began. */
  get position(): number {
    return this.#position;
  }

  /** Number of events that were loaded; some of them may still wait to be returned. */
  get loadedCount(): number {
    return this.#loadedCount;
  }

  /** Returns the next event; `undefined` when there are no more. */
  async next(): Promise<EventInRoom | undefined> {
    for (let source = this.#newest(); source; source = this.#newest()) {
      const stored = source.events.shift();
      if (!stored || !source.head) {
        await this.#read(source);
        continue;
      }
      const position = stored.stream ?? 0;
      source.upTo = source.events[0]?.stream ?? position - 1;
      this.#position = position;
      return { head: source.head, stored };
    }
    return undefined;
  }

  /** Returns the room that may have the newest event. */
  #newest(): Source | undefined {
    let newest: Source | undefined;
    for (const source of this.#opened) {
      if (source.events.length === 0 && !source.hasMore) this.#opened.delete(source);
      else if (source.upTo > (newest?.upTo ?? Number.NEGATIVE_INFINITY)) newest = source;
    }
    const unopened = this.#unopened.at(-1);
    if (!unopened || (newest && newest.upTo >= unopened.upTo)) return newest;
    this.#unopened.pop();
    this.#opened.add(unopened);
    return unopened;
  }

  async #read(source: Source): Promise<void> {
    const { room } = source;
    source.head ??= await this.#engine.heads.get(room.roomId);
    const { head } = source;
    if (!head) source.hasMore = false;
    else if (room.membership === 'invite') await this.#readInvite(source);
    else await this.#readPage(source, head);
    this.#loadedCount += source.events.length;
    source.upTo = source.events[0]?.stream ?? source.upTo;
  }

  async #readInvite(source: Source): Promise<void> {
    const { eventNid, stream } = source.room;
    source.hasMore = false;
    const invite = await this.#engine.events.get(eventNid);
    if (invite && (await this.#isShown(invite))) source.events = [{ ...invite, stream }];
  }

  async #readPage(source: Source, head: RoomHead): Promise<void> {
    const limit = source.pageSize;
    const range = {
      after: source.room.stream,
      before: source.upTo + 1,
      limit,
      direction: 'backward',
    } as const;
    source.events = await this.#engine.events.timeline(head.roomNid, range);
    source.hasMore = source.events.length === limit;
    source.pageSize = Math.min(2 * limit, maxPage);
  }
}
