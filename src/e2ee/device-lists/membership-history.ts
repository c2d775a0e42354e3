import { RecentChanges } from '../../kernel/recent-changes.ts';
import type { StreamReader } from '../../kernel/streams/index.ts';
import { membershipOf, splitStateMapKey, stateMapKey } from '../../protocol/index.ts';
import type { RoomReader, UserRoom } from '../../room-engine/index.ts';

/** A user has joined a room, or is not joined to it any more. */
export interface MembershipTransition {
  readonly position: number;
  readonly roomId: string;
  readonly userId: string;
  /** Whether the user is joined after the transition. */
  readonly joined: boolean;
}

/**
 * Number of transitions in memory by default. They cover minutes on a large server, and weeks on a small one.
 */
export const recentCapacity = 20_000;

/**
 * Provides the joins and leaves of users: recent transitions from memory, and older transitions from the state history
 * of rooms.
 */
export class MembershipHistory {
  readonly #engine: RoomReader;
  readonly #recent: RecentChanges<MembershipTransition>;

  constructor(engine: RoomReader, streams: StreamReader, capacity = recentCapacity) {
    this.#engine = engine;
    this.#recent = new RecentChanges(streams.current, capacity);
    engine.stream.subscribe(({ roomId, membershipChanges }, position) => {
      for (const { userId, from, to } of membershipChanges) {
        const joined = to === 'join';
        if (joined !== (from === 'join')) this.#recent.add({ position, roomId, userId, joined }, position);
      }
    });
  }

  /** Whether it is known, without a query, that there were no transitions after a position. */
  isUnchangedSince(position: number): boolean {
    return this.#recent.isUnchangedSince(position);
  }

  /** The transitions after a position, oldest first; `undefined` when memory does not reach back to it. */
  recent(after: number): readonly MembershipTransition[] | undefined {
    return this.#recent.between(after);
  }

  /** Reads the transitions of rooms in `(after, upTo]` from the database, oldest first. */
  async read(rooms: readonly UserRoom[], after: number, upTo: number): Promise<MembershipTransition[]> {
    const changedRooms = await this.#engine.events.changedRooms(
      rooms.map(({ roomNid }) => roomNid),
      after,
    );
    const transitions: MembershipTransition[] = [];
    for (const room of rooms) {
      if (changedRooms.has(room.roomNid)) transitions.push(...(await this.#readRoom(room, after, upTo)));
    }
    return transitions.sort((a, b) => a.position - b.position);
  }

  async #readRoom(
    { roomId, roomNid }: UserRoom,
    after: number,
    upTo: number,
  ): Promise<MembershipTransition[]> {
    const deltas = await this.#engine.stateDeltas(roomNid, after, upTo);
    const keys = await this.#engine.stateKeys.names(deltas.map(({ keyNid }) => keyNid));
    const transitions: MembershipTransition[] = [];
    for (const [type, userId] of keys.map(splitStateMapKey)) {
      if (type !== 'm.room.member') continue;
      transitions.push(...(await this.#readMember(roomNid, roomId, userId, after, upTo)));
    }
    return transitions;
  }

  async #readMember(
    roomNid: number,
    roomId: string,
    userId: string,
    after: number,
    upTo: number,
  ): Promise<MembershipTransition[]> {
    const history = await this.#engine.stateHistory(roomNid, stateMapKey('m.room.member', userId));
    const transitions: MembershipTransition[] = [];
    let wasJoined = false;
    for (const { stream, event } of history) {
      const joined = event !== undefined && membershipOf(event.event.content) === 'join';
      if (joined !== wasJoined && stream > after && stream <= upTo) {
        transitions.push({ position: stream, roomId, userId, joined });
      }
      wasJoined = joined;
    }
    return transitions;
  }
}
