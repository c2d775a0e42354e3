import type { StreamReader } from '../../kernel/streams/index.ts';
import { membershipOf } from '../../protocol/index.ts';
import type { RoomFact, RoomReader, StoredEvent } from '../../room-engine/index.ts';

/** An event that may notify users, with its position on the stream of rooms. */
export interface NewEvent {
  readonly stored: StoredEvent;
  readonly position: number;
}

/** Maximum number of buffered events; when there are more, events are read from the database. */
const maxBufferedEvents = 10_000;

/** Number of events that are read at a time. */
const pageSize = 200;

/**
 * Reads the events that were added to timelines, and invites by remote servers: from the buffer of this process,
 * or else, for instance after a restart, from the database.
 */
export class NewEvents {
  readonly #engine: RoomReader;
  readonly #users: ReadonlySet<string>;
  /** The events after the position `#since` that were not returned yet. */
  #bufferedEvents: NewEvent[] = [];
  /** Position after which the buffer is complete. */
  #since: number;

  /** @param users local users whose invites by remote servers are included */
  constructor(engine: RoomReader, streams: Pick<StreamReader, 'current'>, users: ReadonlySet<string>) {
    this.#engine = engine;
    this.#users = users;
    this.#since = streams.current;
    engine.stream.subscribe((fact, position) => this.#buffer(fact, position));
  }

  /** Iterates over the events in `(after, upTo]` in their order, in groups. */
  async *between(after: number, upTo: number): AsyncGenerator<readonly NewEvent[]> {
    const isComplete = after >= this.#since;
    const end = this.#bufferedEvents.findIndex(({ position }) => position > upTo);
    const events = this.#bufferedEvents.splice(0, end === -1 ? this.#bufferedEvents.length : end);
    // When the caller fails, its next attempt reads from the database.
    this.#since = Math.max(this.#since, upTo);
    if (!isComplete) {
      yield* this.#readStored(after, upTo);
      return;
    }
    for (let start = 0; start < events.length; start += pageSize) yield events.slice(start, start + pageSize);
  }

  #buffer({ onTimeline, stored, membershipChanges }: RoomFact, position: number): void {
    const invites = () =>
      membershipChanges.some(({ userId, to }) => to === 'invite' && this.#users.has(userId));
    if (this.#users.size === 0 || !(onTimeline || (stored.outOfBand && invites()))) return;
    this.#bufferedEvents.push({ stored, position });
    if (this.#bufferedEvents.length <= maxBufferedEvents) return;
    this.#bufferedEvents = [];
    this.#since = position;
  }

  async *#readStored(after: number, upTo: number): AsyncGenerator<readonly NewEvent[]> {
    const invites = await this.#readInvites(after, upTo);
    for (let from = after; from < upTo; ) {
      const events = await this.#engine.events.between(from, upTo, pageSize);
      const last = events.length < pageSize ? upTo : (events.at(-1)?.stream ?? upTo);
      const page = events.map((stored) => ({ stored, position: stored.stream ?? 0 }));
      const invitesOfPage = invites.filter(({ position }) => position > from && position <= last);
      yield [...page, ...invitesOfPage].sort((a, b) => a.position - b.position);
      from = last;
    }
  }

  /** Returns invites by remote servers that the invited users have neither accepted nor rejected. */
  async #readInvites(after: number, upTo: number): Promise<NewEvent[]> {
    const remoteInvites: NewEvent[] = [];
    for (const userId of this.#users) {
      for (const { membership, stream, eventNid } of (await this.#engine.userRooms.of(userId)).values()) {
        if (membership !== 'invite' || stream <= after || stream > upTo) continue;
        const stored = await this.#engine.events.get(eventNid);
        if (stored?.outOfBand) remoteInvites.push({ stored, position: stream });
      }
    }
    return remoteInvites;
  }
}

/** Returns the user whom an event invites; `undefined` for events that are not invites. */
export function invitedUser({ event }: StoredEvent): string | undefined {
  const isInvite = event.type === 'm.room.member' && membershipOf(event.content) === 'invite';
  return isInvite ? event.stateKey : undefined;
}
