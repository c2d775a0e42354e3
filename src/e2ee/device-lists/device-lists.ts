import type { Devices } from '../../devices/index.ts';
import type { Database } from '../../kernel/database/index.ts';
import { RecentChanges } from '../../kernel/recent-changes.ts';
import type { Stream, StreamReader } from '../../kernel/streams/index.ts';
import type { RoomReader } from '../../room-engine/index.ts';
import { usersSignedSince } from '../keys/user-signatures.ts';
import type { E2eeTables } from '../tables.ts';
import { MembershipHistory, type MembershipTransition, recentCapacity } from './membership-history.ts';
import { UsersSharingRooms } from './users-sharing-rooms.ts';

/**
 * The user ids in `device_lists` of a sync: users whose keys the client has to query again, and users whose
 * device lists it can stop tracking.
 */
export interface DeviceListChanges {
  readonly changed: string[];
  readonly left: string[];
}

/**
 * A user has signed another user's master key, or has a new user-signing key. Only the user's own devices receive the
 * target user as a device list change. For a new user-signing key, the target is its owner, because only the owner may
 * see it.
 */
export interface SignatureChange {
  readonly userId: string;
  readonly targetUserId: string;
}

export interface DeviceListsDeps {
  readonly database: Database;
  readonly streams: StreamReader;
  readonly devices: Devices;
  readonly engine: RoomReader;
  readonly signatureStream: Stream<SignatureChange>;
  /** Number of changes of each kind in memory; set by tests. */
  readonly capacity?: number;
}

/** Number of users whose rooms are loaded before control returns to the event loop. */
const usersPerTurn = 100;

/**
 * Finds the device list changes for a user: users who share a room with the user and whose devices have changed, and
 * users who begin or stop sharing rooms with the user.
 * Source: client-server API, "Tracking the device list for a user" and the extensions to `/sync` of "End-to-End
 * Encryption". Two choices that the specification leaves open: all rooms count, not only encrypted rooms; and when two
 * users who share a room come to share another room, neither becomes `changed`.
 */
export class DeviceLists {
  readonly #deps: DeviceListsDeps;
  readonly #membershipHistory: MembershipHistory;
  /** Ids of users whose devices or cross-signing keys have changed. */
  readonly #changes: RecentChanges<string>;
  readonly #signatures: RecentChanges<SignatureChange>;

  constructor(deps: DeviceListsDeps) {
    const { streams, devices, engine, signatureStream, capacity = recentCapacity } = deps;
    this.#deps = deps;
    this.#membershipHistory = new MembershipHistory(engine, streams, capacity);
    this.#changes = new RecentChanges(streams.current, capacity);
    this.#signatures = new RecentChanges(streams.current, capacity);
    devices.deviceListStream.subscribe(({ userId }, position) => this.#changes.add(userId, position));
    signatureStream.subscribe((change, position) => this.#signatures.add(change, position));
  }

  /**
   * Returns true when it is known without a query that no user has changes after a position, else false.
   */
  isQuiet(after: number): boolean {
    const recent = [this.#membershipHistory, this.#changes, this.#signatures];
    return recent.every((changes) => changes.isUnchangedSince(after));
  }

  /** Returns the joined rooms of a user. Their members receive the user's device list changes. */
  async roomsOf(userId: string): Promise<string[]> {
    return this.#deps.engine.userRooms.withMembership(userId, 'join');
  }

  /**
   * Returns the changes for a user in `(after, upTo]`. Users who changed only after `upTo` may be included as well,
   * because only the last change of a user is stored; a repeated `changed` is harmless. Reads the changes from memory,
   * or from the database when memory does not reach back to `after`.
   * @param upTo at most the current position
   */
  async changes(userId: string, after: number, upTo: number): Promise<DeviceListChanges> {
    const { engine, streams } = this.#deps;
    const end = Math.min(upTo, streams.current);
    const [updated, signed] = await Promise.all([
      this.#changedUsers(after),
      this.#usersSignedBy(userId, after),
    ]);
    const ownRooms = await engine.userRooms.of(userId);
    // Transitions up to this position may be read from the database; later transitions are always in memory.
    const boundary = streams.current;
    const past = this.#membershipHistory.recent(after)
      ? []
      : await this.#membershipHistory.read(
          [...ownRooms.values()].filter(({ membership, stream }) => membership === 'join' || stream > after),
          after,
          boundary,
        );
    const transitions = () => this.#transitions(past, after, boundary);
    const affected = await this.#usersWithSharingChange(userId, transitions(), after, end);
    const others = [...new Set([...updated, ...affected])].filter((other) => other !== userId);
    const rooms = await this.#loadRooms(others);
    // No await may follow: rooms and transitions must be of the same position.
    const usersSharingRooms = new UsersSharingRooms(ownRooms, transitions(), userId);
    const changed = new Set(signed);
    if (updated.has(userId)) changed.add(userId);
    const left: string[] = [];
    for (const other of others) {
      const shareNow = usersSharingRooms.shareRoomAt(other, rooms.get(other)!, end);
      const sharedBefore = affected.has(other)
        ? usersSharingRooms.shareRoomAt(other, rooms.get(other)!, after)
        : shareNow;
      // While no room was shared, the server of the other user sent no device list updates to this server.
      const stoppedSharing = () =>
        affected.has(other) && usersSharingRooms.stoppedSharing(other, rooms.get(other)!, after, end);
      const startedSharing = shareNow && (!sharedBefore || stoppedSharing());
      if (startedSharing || (shareNow && updated.has(other))) changed.add(other);
      // If this user has joined a room of the other user, `changed` also contains this user's own id, as on other
      // homeservers.
      if (startedSharing && usersSharingRooms.joinedRoomOf(other, rooms.get(other)!, after, end))
        changed.add(userId);
      if (!shareNow && sharedBefore && affected.has(other)) left.push(other);
    }
    return { changed: [...changed], left };
  }

  /** Users whose devices or cross-signing keys have changed. */
  async #changedUsers(after: number): Promise<ReadonlySet<string>> {
    const recent = this.#changes.between(after);
    if (recent) return new Set(recent);
    return new Set(await this.#deps.devices.changedSince(after, Number.MAX_SAFE_INTEGER));
  }

  async #usersSignedBy(userId: string, after: number): Promise<string[]> {
    const recent = this.#signatures.between(after);
    if (!recent) return usersSignedSince(this.#deps.database.reader<E2eeTables>(), userId, after);
    return recent.filter((change) => change.userId === userId).map(({ targetUserId }) => targetUserId);
  }

  /**
   * Returns the transitions after a position: `past`, and newer transitions from memory. `past` was read from the
   * database up to `boundary`.
   */
  #transitions(
    past: readonly MembershipTransition[],
    after: number,
    boundary: number,
  ): readonly MembershipTransition[] {
    const recent = this.#membershipHistory.recent(past.length > 0 ? boundary : after);
    return [...past, ...(recent ?? this.#membershipHistory.recent(boundary) ?? [])];
  }

  /** Users who may have begun or stopped sharing rooms with the user. */
  async #usersWithSharingChange(
    userId: string,
    transitions: readonly MembershipTransition[],
    after: number,
    upTo: number,
  ): Promise<ReadonlySet<string>> {
    const { engine } = this.#deps;
    const ownRooms = await engine.userRooms.of(userId);
    const affected = new Set<string>();
    const rooms = new Set<string>();
    for (const transition of transitions) {
      if (transition.position <= after || transition.position > upTo) continue;
      if (transition.userId === userId) rooms.add(transition.roomId);
      else if (ownRooms.has(transition.roomId)) affected.add(transition.userId);
    }
    for (const roomId of rooms) {
      const head = await engine.heads.get(roomId);
      for (const [member, membership] of head?.members ?? []) if (membership === 'join') affected.add(member);
      // Includes users who left while this user was in the room, or after this user had left.
      for (const transition of transitions) if (transition.roomId === roomId) affected.add(transition.userId);
    }
    return affected;
  }

  /** Returns the rooms of each user, whatever the membership. */
  async #loadRooms(userIds: readonly string[]) {
    const { userRooms } = this.#deps.engine;
    const rooms = new Map<string, Awaited<ReturnType<typeof userRooms.of>>>();
    for (let start = 0; start < userIds.length; start += usersPerTurn) {
      if (start > 0) await new Promise(setImmediate);
      const batch = userIds.slice(start, start + usersPerTurn);
      await Promise.all(batch.map(async (userId) => rooms.set(userId, await userRooms.of(userId))));
    }
    return rooms;
  }
}
