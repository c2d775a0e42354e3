import { FactBuffer, type StreamReader } from '../../kernel/streams/index.ts';
import { membershipOf } from '../../protocol/index.ts';
import type { RoomFact, RoomReader, StoredEvent } from '../../room-engine/index.ts';

/** An event that may notify users, with its position on the stream of rooms. */
export interface NewEvent {
  readonly stored: StoredEvent;
  readonly position: number;
}

/** Number of events that are read at a time. */
const pageSize = 200;

/**
 * Reads the events that were added to timelines, and invites by remote servers: from the buffer of this process,
 * or else, for instance after a restart, from the database.
 */
export class NewEvents {
  readonly #engine: RoomReader;
  readonly #users: ReadonlySet<string>;
  readonly #buffer: FactBuffer<NewEvent>;

  /**
   * @param users the users with pushers, kept up to date by the caller. Of the invites by remote servers, only invites
   * to these users are included. While there are no such users, no events are buffered.
   */
  constructor(engine: RoomReader, streams: Pick<StreamReader, 'current'>, users: ReadonlySet<string>) {
    this.#engine = engine;
    this.#users = users;
    this.#buffer = new FactBuffer(streams);
    engine.stream.subscribe((fact, position) => this.#add(fact, position));
  }

  /** Iterates over the events in `(after, upTo]` in their order, in groups. */
  async *between(after: number, upTo: number): AsyncGenerator<readonly NewEvent[]> {
    const events = this.#buffer.take(after, upTo);
    if (events === undefined) {
      yield* this.#readStored(after, upTo);
      return;
    }
    for (let start = 0; start < events.length; start += pageSize) yield events.slice(start, start + pageSize);
  }

  #add({ onTimeline, stored, membershipChanges }: RoomFact, position: number): void {
    if (this.#users.size === 0) return;
    const invitesUser = () =>
      membershipChanges.some(({ userId, to }) => to === 'invite' && this.#users.has(userId));
    if (!onTimeline && !(stored.outOfBand && invitesUser())) return;
    this.#buffer.add({ stored, position });
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
