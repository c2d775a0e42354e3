import { type Cache, type CacheRegistry, MiB } from '../../kernel/caches/index.ts';
import type { AnyWriter, Database, Reader } from '../../kernel/database/index.ts';
import type { Stream, StreamWriter } from '../../kernel/streams/index.ts';
import type { Membership } from '../../protocol/index.ts';
import type { RoomRemoval } from '../room-removals.ts';
import type { RoomFact } from '../stored-event.ts';
import type { RoomTables } from '../tables.ts';
import type { UserRoom } from './user-room.ts';

/** A changed membership of a user. */
interface Change {
  readonly room: UserRoom;
  /** The user was joined before, and only the membership event is new. */
  readonly isRenewal: boolean;
}

/** A running query for the rooms of a user. */
interface Loading {
  readonly promise: Promise<Map<string, UserRoom>>;
  /** Changes that arrived while the rows were being read. */
  readonly missedChanges: Change[];
  /** Rooms that were deleted while the rows were being read. */
  readonly purgedRoomIds: Set<string>;
}

/** Maximum number of users whose rooms are cached. */
const maxCachedUsers = 20_000;

/** Estimated bytes of a cached room of a user. */
const roomBytes = 200;

/** The methods that read the rooms of users. */
export type UserRoomsReader = Omit<UserRooms, 'forget' | 'onForget'>;

/** The rooms of users, cached for active users. */
export class UserRooms {
  readonly #database: Database;
  readonly #reader: Reader<RoomTables>;
  readonly #removals: Stream<RoomRemoval>;
  readonly #users: Cache<string, Map<string, UserRoom>>;
  readonly #loading = new Map<string, Loading>();
  #onForget: ((writer: AnyWriter, room: UserRoom) => Promise<void>) | undefined;

  constructor(
    database: Database,
    caches: CacheRegistry,
    stream: Stream<RoomFact>,
    removals: Stream<RoomRemoval>,
  ) {
    this.#users = caches.create('rooms_of_users', {
      size: maxCachedUsers,
      maxBytes: 16 * MiB,
      sizeOf: (rooms) => roomBytes * rooms.size,
    });
    this.#database = database;
    this.#reader = database.reader<RoomTables>();
    this.#removals = removals;
    stream.subscribe((fact) => this.#apply(fact));
    removals.subscribe((removal) => {
      if (removal.kind === 'purged') this.#removeRoom(removal.roomId);
      if (removal.kind === 'forgotten') this.#set(removal.userId, { room: removal.room, isRenewal: false });
    });
  }

  /** Returns every room in which the user has a membership, by room id; forgotten rooms included. */
  async of(userId: string): Promise<ReadonlyMap<string, UserRoom>> {
    const cached = this.#users.get(userId);
    if (cached) return cached;
    let loading = this.#loading.get(userId);
    if (!loading) {
      loading = { promise: this.#load(userId), missedChanges: [], purgedRoomIds: new Set() };
      this.#loading.set(userId, loading);
    }
    return loading.promise;
  }

  /** Returns the rooms of a user when they are cached; else `undefined`. */
  peek(userId: string): ReadonlyMap<string, UserRoom> | undefined {
    return this.#users.get(userId);
  }

  /** Returns the ids of the rooms in which the user has the given membership. */
  async withMembership(userId: string, membership: Membership): Promise<string[]> {
    const rooms = await this.of(userId);
    return [...rooms.values()].filter((room) => room.membership === membership).map((room) => room.roomId);
  }

  /** Returns the ids of the rooms that both users are joined to. Costs no query for users whose rooms are cached. */
  async shared(userId: string, otherUserId: string): Promise<string[]> {
    const [rooms, otherRooms] = await Promise.all([this.of(userId), this.of(otherUserId)]);
    const [fewer, more] = rooms.size <= otherRooms.size ? [rooms, otherRooms] : [otherRooms, rooms];
    return [...fewer.values()]
      .filter(({ roomId, membership }) => membership === 'join' && more.get(roomId)?.membership === 'join')
      .map(({ roomId }) => roomId);
  }

  /**
   * Returns the nids of the rooms that each user is joined to, for users who need not be active on this server. At most
   * 30,000 users.
   */
  async joinedNids(userIds: readonly string[]): Promise<Map<string, number[]>> {
    if (userIds.length === 0) return new Map();
    const rows = await this.#reader
      .selectFrom('memberships')
      .select(['user_id', 'room_nid'])
      .where('user_id', 'in', userIds)
      .where('membership', '=', 'join')
      .execute();
    const roomsByUser = new Map<string, number[]>();
    for (const row of rows) {
      const rooms = roomsByUser.get(row.user_id);
      if (rooms) rooms.push(row.room_nid);
      else roomsByUser.set(row.user_id, [row.room_nid]);
    }
    return roomsByUser;
  }

  /** Like `joinedNids`, but returns room ids. Reads the rooms of active users from the cache. At most 30,000 users. */
  async joinedIds(userIds: readonly string[]): Promise<Map<string, string[]>> {
    const roomsByUser = new Map<string, string[]>();
    const uncached: string[] = [];
    for (const userId of userIds) {
      const cached = this.#users.get(userId);
      if (!cached) uncached.push(userId);
      else roomsByUser.set(userId, joinedRoomIds(cached));
    }
    if (uncached.length === 0) return roomsByUser;
    const rows = await this.#reader
      .selectFrom('memberships')
      .innerJoin('rooms', 'rooms.room_nid', 'memberships.room_nid')
      .select(['memberships.user_id', 'rooms.room_id'])
      .where('memberships.user_id', 'in', uncached)
      .where('memberships.membership', '=', 'join')
      .execute();
    for (const row of rows) {
      const rooms = roomsByUser.get(row.user_id);
      if (rooms) rooms.push(row.room_id);
      else roomsByUser.set(row.user_id, [row.room_id]);
    }
    return roomsByUser;
  }

  /** Returns the nids of the rooms that users of a server are joined to. Reads all memberships: for background work. */
  async joinedNidsOfServer(serverName: string): Promise<Set<number>> {
    const rows = await this.#database
      .scanner<RoomTables>()
      .selectFrom('memberships')
      .select('room_nid')
      .distinct()
      .where('user_id', 'like', `%:${serverName}`)
      .where('membership', '=', 'join')
      .execute();
    return new Set(rows.map((row) => row.room_nid));
  }

  /** Registers work for each transaction in which a user forgets a room. */
  onForget(work: (writer: AnyWriter, room: UserRoom) => Promise<void>): void {
    this.#onForget = work;
  }

  /** Marks a room as forgotten by the user, until the user's membership in it changes. */
  async forget(streams: StreamWriter, userId: string, room: UserRoom): Promise<void> {
    await streams.write<RoomTables, void>(async (writer, publish) => {
      await writer
        .updateTable('memberships')
        .set({ forgotten: 1 })
        .where('user_id', '=', userId)
        .where('room_nid', '=', room.roomNid)
        .where('stream', '=', room.stream)
        .execute();
      await this.#onForget?.(writer, room);
      publish(this.#removals, { kind: 'forgotten', userId, room: { ...room, forgotten: true } });
    });
  }

  async #load(userId: string): Promise<Map<string, UserRoom>> {
    try {
      const rows = await this.#reader
        .selectFrom('memberships')
        .innerJoin('rooms', 'rooms.room_nid', 'memberships.room_nid')
        .selectAll('memberships')
        .select('rooms.room_id')
        .where('user_id', '=', userId)
        .execute();
      const rooms = new Map<string, UserRoom>();
      for (const row of rows) {
        rooms.set(row.room_id, {
          roomId: row.room_id,
          roomNid: row.room_nid,
          membership: row.membership as Membership,
          eventNid: row.event_nid,
          stream: row.stream,
          forgotten: row.forgotten !== 0,
        });
      }
      this.#users.set(userId, rooms);
      const loading = this.#loading.get(userId);
      this.#loading.delete(userId);
      for (const change of loading?.missedChanges ?? []) this.#set(userId, change);
      for (const roomId of loading?.purgedRoomIds ?? []) rooms.delete(roomId);
      return rooms;
    } finally {
      this.#loading.delete(userId);
    }
  }

  #apply({ roomId, position: stream, stored, membershipChanges }: RoomFact): void {
    const { roomNid } = stored;
    for (const { userId, from, to, eventNid } of membershipChanges) {
      const room = { roomId, roomNid, membership: to, eventNid, stream, forgotten: false };
      this.#set(userId, { room, isRenewal: from === 'join' && to === 'join' });
    }
  }

  /** Removes a deleted room from the cached rooms, and from rooms that are being loaded. */
  #removeRoom(roomId: string): void {
    for (const rooms of this.#users.values()) rooms.delete(roomId);
    for (const { purgedRoomIds } of this.#loading.values()) purgedRoomIds.add(roomId);
  }

  #set(userId: string, change: Change): void {
    const rooms = this.#users.peek(userId);
    const { room, isRenewal } = change;
    const cached = rooms?.get(room.roomId);
    if (rooms && (!cached || cached.stream <= room.stream)) {
      rooms.set(room.roomId, isRenewal && cached ? { ...room, stream: cached.stream } : room);
      if (!cached) this.#users.remeasure(userId);
    }
    this.#loading.get(userId)?.missedChanges.push(change);
  }
}

const joinedRoomIds = (rooms: ReadonlyMap<string, UserRoom>) =>
  [...rooms.values()].filter(({ membership }) => membership === 'join').map(({ roomId }) => roomId);
