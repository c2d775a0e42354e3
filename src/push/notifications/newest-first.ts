import type { RoomHead, RoomReader, StoredEvent } from '../../room-engine/index.ts';

/** An event and the room that it is in. */
export interface EventInRoom {
  readonly head: RoomHead;
  readonly stored: StoredEvent;
}

/** One of the rooms: its events that were read but not returned yet. */
interface Source {
  readonly head: RoomHead;
  /** The position at which the user joined: earlier events did not notify them. */
  readonly after: number;
  /** Newest first. */
  events: StoredEvent[];
  /** The position before which to read next; `undefined` at the end. */
  before: number | undefined;
}

/** Number of events of a room that are read together. */
const pageSize = 20;

/** Maximum number of rooms that are loaded at the same time. */
const roomsAtOnce = 16;

/**
 * Iterates over the events that were sent to a user's joined rooms since the user joined, and over the user's invites,
 * newest first.
 */
export class NewestFirst {
  readonly #engine: RoomReader;
  readonly #sources: readonly Source[];
  /** The position of the last returned event: all newer events were returned. */
  #position: number;

  private constructor(engine: RoomReader, sources: readonly Source[], before: number) {
    this.#engine = engine;
    this.#sources = sources;
    this.#position = before;
  }

  /**
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
    const sources: Source[] = [];
    for (const { roomId, eventNid, stream, membership } of rooms) {
      if (membership !== 'invite' || stream >= before) continue;
      const [head, invite] = await Promise.all([engine.heads.get(roomId), engine.events.get(eventNid)]);
      if (!head || !invite || !(await isShown(invite))) continue;
      // An out-of-band invite has no position on a timeline: the position of the membership counts.
      sources.push({ head, after: stream, events: [{ ...invite, stream }], before: undefined });
    }
    for (let start = 0; start < joined.length; start += roomsAtOnce) {
      const loads = joined.slice(start, start + roomsAtOnce).map(async ({ roomId, stream }) => {
        const head = await engine.heads.get(roomId);
        if (head) sources.push({ head, after: stream, events: [], before });
      });
      await Promise.all(loads);
    }
    return new NewestFirst(engine, sources, before);
  }

  /** The position of the last returned event. */
  get position(): number {
    return this.#position;
  }

  /** Returns the next event; `undefined` when there are no more. */
  async next(): Promise<EventInRoom | undefined> {
    let newest: Source | undefined;
    for (const source of this.#sources) {
      if (source.events.length === 0 && source.before !== undefined) await this.#read(source);
      if (streamOf(source) > streamOf(newest)) newest = source;
    }
    const stored = newest?.events.shift();
    if (!newest || !stored) return undefined;
    this.#position = stored.stream ?? 0;
    return { head: newest.head, stored };
  }

  async #read(source: Source): Promise<void> {
    const { head, after, before } = source;
    if (before === undefined) return;
    const range = { after, before, limit: pageSize, direction: 'backward' } as const;
    source.events = await this.#engine.events.timeline(head.roomNid, range);
    source.before = source.events.length < pageSize ? undefined : source.events.at(-1)?.stream;
  }
}

const streamOf = (source: Source | undefined) => source?.events[0]?.stream ?? Number.NEGATIVE_INFINITY;
