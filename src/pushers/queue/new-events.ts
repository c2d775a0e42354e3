import type { StreamReader } from '../../kernel/streams/index.ts';
import { membershipOf } from '../../protocol/index.ts';
import type { RoomFact, RoomReader, StoredEvent } from '../../room-engine/index.ts';

/** An event that may notify users, with its position on the stream of rooms. */
export interface NewEvent {
  readonly stored: StoredEvent;
  readonly position: number;
}

/** Maximum number of buffered facts; when there are more, events are read from the database. */
const maxFacts = 10_000;

/** Number of events that are read at a time. */
const pageSize = 200;

/**
 * Reads the events that were added to timelines, and invites by remote servers: from the buffered facts of this process,
 * or else, for instance after a restart, from the database.
 */
export class NewEvents {
  readonly #engine: RoomReader;
  readonly #users: ReadonlySet<string>;
  /** The facts after the position `#since` that were not returned yet. */
  #facts: NewEvent[] = [];
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
    const end = this.#facts.findIndex(({ position }) => position > upTo);
    const facts = this.#facts.splice(0, end === -1 ? this.#facts.length : end);
    // When the caller fails, its next attempt reads from the database.
    this.#since = Math.max(this.#since, upTo);
    if (!isComplete) {
      yield* this.#stored(after, upTo);
      return;
    }
    for (let start = 0; start < facts.length; start += pageSize) yield facts.slice(start, start + pageSize);
  }

  #buffer({ onTimeline, stored, membershipChanges }: RoomFact, position: number): void {
    const invites = () =>
      membershipChanges.some(({ userId, to }) => to === 'invite' && this.#users.has(userId));
    if (this.#users.size === 0 || !(onTimeline || (stored.outOfBand && invites()))) return;
    this.#facts.push({ stored, position });
    if (this.#facts.length <= maxFacts) return;
    this.#facts = [];
    this.#since = position;
  }

  async *#stored(after: number, upTo: number): AsyncGenerator<readonly NewEvent[]> {
    const invites = await this.#invites(after, upTo);
    for (let from = after; from < upTo; ) {
      const events = await this.#engine.events.between(from, upTo, pageSize);
      const last = events.length < pageSize ? upTo : (events.at(-1)?.stream ?? upTo);
      const page = events.map((stored) => ({ stored, position: stored.stream ?? 0 }));
      const ofPage = invites.filter(({ position }) => position > from && position <= last);
      yield [...page, ...ofPage].sort((one, other) => one.position - other.position);
      from = last;
    }
  }

  /** Returns invites by remote servers that the invited users have neither accepted nor rejected. */
  async #invites(after: number, upTo: number): Promise<NewEvent[]> {
    const found: NewEvent[] = [];
    for (const userId of this.#users) {
      for (const { membership, stream, eventNid } of (await this.#engine.userRooms.of(userId)).values()) {
        if (membership !== 'invite' || stream <= after || stream > upTo) continue;
        const stored = await this.#engine.events.get(eventNid);
        if (stored?.outOfBand) found.push({ stored, position: stream });
      }
    }
    return found;
  }
}

/** Returns the user whom an event invites; `undefined` for events that are not invites. */
export function invitedUser({ event }: StoredEvent): string | undefined {
  const isInvite = event.type === 'm.room.member' && membershipOf(event.content) === 'invite';
  return isInvite ? event.stateKey : undefined;
}
