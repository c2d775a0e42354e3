import { RecentChanges } from '../../kernel/recent-changes.ts';
import type { StreamReader } from '../../kernel/streams/index.ts';
import { membershipOf, splitStateMapKey, stateMapKey } from '../../protocol/index.ts';
import type { RoomReader, UserRoom } from '../../room-engine/index.ts';

/** Somebody came into a room or went out of it. */
export interface MembershipTransition {
  readonly position: number;
  readonly roomId: string;
  readonly userId: string;
  /** Whether they were in the room afterwards; before, it was the other way round. */
  readonly joined: boolean;
}

/** Changes that are kept in memory, unless a test says otherwise: those of minutes on a large server, of weeks on a small one. */
export const recentCapacity = 20_000;

/** Who came and went where: from memory, or for longer ago from the history of the rooms. */
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

  /** Whether it is certain that nobody came or went after a position. */
  isUnchangedSince(position: number): boolean {
    return this.#recent.isUnchangedSince(position);
  }

  /** Everything after a position, oldest first; `undefined` when memory does not reach back that far. */
  recent(after: number): readonly MembershipTransition[] | undefined {
    return this.#recent.between(after);
  }

  /** What happened in rooms in `(after, upTo]`, from the database. */
  async read(rooms: readonly UserRoom[], after: number, upTo: number): Promise<MembershipTransition[]> {
    const grown = await this.#engine.events.changedRooms(
      rooms.map(({ roomNid }) => roomNid),
      after,
    );
    const passages: MembershipTransition[] = [];
    for (const room of rooms) {
      if (grown.has(room.roomNid)) passages.push(...(await this.#ofRoom(room, after, upTo)));
    }
    return passages.sort((a, b) => a.position - b.position);
  }

  async #ofRoom({ roomId, roomNid }: UserRoom, after: number, upTo: number): Promise<MembershipTransition[]> {
    const deltas = await this.#engine.stateDeltas(roomNid, after, upTo);
    const keys = await this.#engine.stateKeys.names(deltas.map(({ keyNid }) => keyNid));
    const passages: MembershipTransition[] = [];
    for (const [type, userId] of keys.map(splitStateMapKey)) {
      if (type !== 'm.room.member') continue;
      passages.push(...(await this.#ofMember(roomNid, roomId, userId, after, upTo)));
    }
    return passages;
  }

  async #ofMember(
    roomNid: number,
    roomId: string,
    userId: string,
    after: number,
    upTo: number,
  ): Promise<MembershipTransition[]> {
    const history = await this.#engine.stateHistory(roomNid, stateMapKey('m.room.member', userId));
    const passages: MembershipTransition[] = [];
    let before = false;
    for (const { stream, event } of history) {
      const joined = event !== undefined && membershipOf(event.event.content) === 'join';
      if (joined !== before && stream > after && stream <= upTo) {
        passages.push({ position: stream, roomId, userId, joined });
      }
      before = joined;
    }
    return passages;
  }
}
