import type { Devices } from '../../devices/index.ts';
import type { Database } from '../../kernel/database/index.ts';
import { RecentChanges } from '../../kernel/recent-changes.ts';
import type { Stream, StreamReader } from '../../kernel/streams/index.ts';
import type { RoomReader } from '../../room-engine/index.ts';
import { usersSignedSince } from '../cross-signing/user-signatures.ts';
import type { E2eeTables } from '../tables.ts';
import { MembershipHistory, type MembershipTransition, recentCapacity } from './membership-history.ts';
import { UsersSharingRooms } from './users-sharing-rooms.ts';

/** Whose keys a client has to ask for again, and whom it need not follow any more. */
export interface DeviceListChanges {
  readonly changed: string[];
  readonly left: string[];
}

/** A user has signed another user's master key: their own devices have to learn of it. */
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
  /** How many changes are kept in memory, for tests. */
  readonly capacity?: number;
}

/** How many users' rooms are looked up before other requests get their turn. */
const usersAtOnce = 100;

/**
 * Tells users whose devices have changed among those with whom they are in a room, and who has come into or gone out
 * of all of their rooms.
 * Source: client-server API, "Tracking the device list for a user" and the extensions to `/sync` of "End-to-End
 * Encryption". Of the choice that it leaves, all rooms count and not only the encrypted ones, and being in another
 * shared room already makes nobody `changed`.
 */
export class DeviceLists {
  readonly #deps: DeviceListsDeps;
  readonly #passages: MembershipHistory;
  /** Ids of users whose devices or cross-signing keys have changed. */
  readonly #changes: RecentChanges<string>;
  readonly #signatures: RecentChanges<SignatureChange>;

  constructor(deps: DeviceListsDeps) {
    const { streams, devices, engine, signatureStream, capacity = recentCapacity } = deps;
    this.#deps = deps;
    this.#passages = new MembershipHistory(engine, streams, capacity);
    this.#changes = new RecentChanges(streams.current, capacity);
    this.#signatures = new RecentChanges(streams.current, capacity);
    devices.deviceListStream.subscribe(({ userId }, position) => this.#changes.add(userId, position));
    signatureStream.subscribe((change, position) => this.#signatures.add(change, position));
  }

  /**
   * Whether surely nothing has changed for anybody after a position, so that `changes` need not be asked. In memory.
   */
  isQuiet(after: number): boolean {
    const recent = [this.#passages, this.#changes, this.#signatures];
    return recent.every((changes) => changes.isUnchangedSince(after));
  }

  /** The rooms whose members have to look again when a user's list has changed. */
  async roomsOf(userId: string): Promise<string[]> {
    return this.#deps.engine.userRooms.withMembership(userId, 'join');
  }

  /**
   * What has changed for a user in `(after, upTo]`. Who changed again after `upTo` is named as well: only the last
   * change is remembered, and being told twice harms nobody. Costs no query when nothing has changed lately.
   * @param upTo not beyond the current position
   */
  async changes(userId: string, after: number, upTo: number): Promise<DeviceListChanges> {
    const { engine, streams } = this.#deps;
    const end = Math.min(upTo, streams.current);
    const [updated, signed] = await Promise.all([this.#updated(after), this.#signed(userId, after)]);
    const own = await engine.userRooms.of(userId);
    const boundary = streams.current;
    const past = this.#passages.recent(after)
      ? []
      : await this.#passages.read(
          [...own.values()].filter(({ membership, stream }) => membership === 'join' || stream > after),
          after,
          boundary,
        );
    const passages = () => this.#all(past, after, boundary);
    const moved = await this.#moved(userId, passages(), after, end);
    const others = [...new Set([...updated, ...moved])].filter((other) => other !== userId);
    const rooms = await this.#roomsOf(others);
    // Nothing is awaited from here: rooms and passages must fit each other.
    const company = new UsersSharingRooms(own, passages(), userId);
    const changed = new Set(signed);
    if (updated.has(userId)) changed.add(userId);
    const left: string[] = [];
    for (const other of others) {
      const now = company.shareRoomAt(other, rooms.get(other)!, end);
      const before = moved.has(other) ? company.shareRoomAt(other, rooms.get(other)!, after) : now;
      // What changed while they were apart nobody has told this server of.
      const wereApart = () =>
        moved.has(other) && company.stoppedSharing(other, rooms.get(other)!, after, end);
      if (now && (!before || updated.has(other) || wereApart())) changed.add(other);
      if (!now && before && moved.has(other)) left.push(other);
    }
    return { changed: [...changed], left };
  }

  /** Everybody whose devices or cross-signing keys have changed. */
  async #updated(after: number): Promise<ReadonlySet<string>> {
    const recent = this.#changes.between(after);
    if (recent) return new Set(recent);
    return new Set(await this.#deps.devices.changedSince(after, Number.MAX_SAFE_INTEGER));
  }

  async #signed(userId: string, after: number): Promise<string[]> {
    const recent = this.#signatures.between(after);
    if (!recent) return usersSignedSince(this.#deps.database.reader<E2eeTables>(), userId, after);
    return recent.filter((change) => change.userId === userId).map(({ targetUserId }) => targetUserId);
  }

  #all(
    past: readonly MembershipTransition[],
    after: number,
    boundary: number,
  ): readonly MembershipTransition[] {
    const recent = this.#passages.recent(past.length > 0 ? boundary : after);
    return [...past, ...(recent ?? this.#passages.recent(boundary) ?? [])];
  }

  /** Users whose company with this one may have begun or ended. */
  async #moved(
    userId: string,
    passages: readonly MembershipTransition[],
    after: number,
    upTo: number,
  ): Promise<ReadonlySet<string>> {
    const { engine } = this.#deps;
    const own = await engine.userRooms.of(userId);
    const moved = new Set<string>();
    const rooms = new Set<string>();
    for (const passage of passages) {
      if (passage.position <= after || passage.position > upTo) continue;
      if (passage.userId === userId) rooms.add(passage.roomId);
      else if (own.has(passage.roomId)) moved.add(passage.userId);
    }
    for (const roomId of rooms) {
      const head = await engine.heads.get(roomId);
      for (const [member, membership] of head?.members ?? []) if (membership === 'join') moved.add(member);
      // Who went while this user was there, and after they had gone.
      for (const passage of passages) if (passage.roomId === roomId) moved.add(passage.userId);
    }
    return moved;
  }

  async #roomsOf(userIds: readonly string[]) {
    const { userRooms } = this.#deps.engine;
    const rooms = new Map<string, Awaited<ReturnType<typeof userRooms.of>>>();
    for (let start = 0; start < userIds.length; start += usersAtOnce) {
      if (start > 0) await new Promise(setImmediate);
      const chunk = userIds.slice(start, start + usersAtOnce);
      await Promise.all(chunk.map(async (userId) => rooms.set(userId, await userRooms.of(userId))));
    }
    return rooms;
  }
}
