import { type Cache, type CacheRegistry, MiB } from '../../kernel/caches/index.ts';
import { KeyedMutex } from '../../kernel/keyed-mutex.ts';
import { mapConcurrently } from '../../kernel/map-concurrently.ts';
import type { StreamReader } from '../../kernel/streams/index.ts';
import type { Receipts } from '../../receipts/index.ts';
import type { RoomReader, UserRoom } from '../../room-engine/index.ts';
import type { InvitePolicy } from '../../rooms/index.ts';
import type { PushEvaluation } from '../evaluation/push-evaluation.ts';
import type { UnreadCounts } from '../unread/tally.ts';
import type { Unread } from '../unread/unread.ts';

export interface BadgeCountsDeps {
  readonly caches: CacheRegistry;
  readonly streams: StreamReader;
  readonly engine: RoomReader;
  readonly receipts: Receipts;
  readonly evaluation: PushEvaluation;
  readonly unread: Unread;
  /** The users' permissions for invites. */
  readonly invitePolicy: InvitePolicy;
  /**
   * `push.group_unread_count_by_room`: true counts the rooms with unread notifications, false counts the notifications.
   */
  readonly countsRooms: boolean;
}

/** The unread rooms and the invites of a user at the last count. */
interface Badge {
  /** Events up to this position on the stream are counted. */
  upTo: number;
  /** Number of unread notifications by room id; rooms without unread notifications are absent. */
  readonly rooms: Map<string, number>;
  /** Senders of the user's invites by the nids of the invites. */
  inviters: ReadonlyMap<number, string>;
  /** Rooms where the user has sent a receipt since the last count. */
  changedRooms: Set<string>;
}

const newBadge = (): Badge => ({ upTo: -1, rooms: new Map(), inviters: new Map(), changedRooms: new Set() });

/** Number of rooms that are counted at the same time. */
const roomsAtOnce = 8;

/** Maximum number of users whose unread rooms are cached. */
const maxUsers = 20_000;

/**
 * Counts the unread notifications and invites of a user in all rooms, for the number that apps show on their icon.
 * Counts a room again only when it has newer events or a new receipt of the user. Counts all rooms again when the user has changed the
 * push rules or ignored users.
 */
export class BadgeCounts {
  readonly #deps: BadgeCountsDeps;
  readonly #badges: Cache<string, Badge>;
  /** Lets the counts of one user run one after the other; the key is the user id. */
  readonly #mutex = new KeyedMutex();

  constructor(deps: BadgeCountsDeps) {
    this.#deps = deps;
    this.#badges = deps.caches.create('badges', {
      size: maxUsers,
      maxBytes: MiB,
      sizeOf: ({ rooms, inviters }) => 200 + 80 * (rooms.size + inviters.size),
    });
    deps.receipts.receiptStream.subscribe(({ userId, roomId }) => {
      this.#badges.peek(userId)?.changedRooms.add(roomId);
    });
  }

  /**
   * Returns the number for the badge: the shown invites, plus the joined rooms with unread notifications or, when
   * `push.group_unread_count_by_room` is off, plus the unread notifications. Notifications in threads count, too.
   */
  of(userId: string): Promise<number> {
    return this.#mutex.run(userId, () => this.#count(userId));
  }

  async #count(userId: string): Promise<number> {
    const { engine, streams, evaluation } = this.#deps;
    // Read before the rooms, so that a room that is joined during the count is counted the next time.
    const upTo = streams.current;
    const rooms = [...(await engine.userRooms.of(userId)).values()];
    const changedAt = await evaluation.members.settingsChangedAt(userId);
    const cached = this.#badges.get(userId);
    const badge = cached && cached.upTo >= changedAt ? cached : newBadge();
    const { changedRooms } = badge;
    badge.changedRooms = new Set();
    // The cached badge collects the receipts that arrive during the count.
    this.#badges.set(userId, badge);
    try {
      await this.#recount(userId, badge, this.#outdatedRooms(rooms, badge, changedRooms), upTo);
    } catch (error) {
      for (const roomId of changedRooms) badge.changedRooms.add(roomId);
      throw error;
    }
    badge.upTo = upTo;
    const invites = rooms.filter(({ membership }) => membership === 'invite');
    badge.inviters = await this.#inviters(badge, invites);
    this.#badges.remeasure(userId);
    let total = await this.#countShownInvites(userId, badge);
    for (const room of rooms) {
      if (room.membership === 'join') total += this.#shareOf(badge.rooms.get(room.roomId) ?? 0);
    }
    return total;
  }

  /** Returns the number that a room with this many unread notifications adds to the badge. */
  #shareOf(count: number): number {
    return this.#deps.countsRooms ? Math.min(1, count) : count;
  }

  /** Returns the joined rooms with events since the badge was counted, or with a receipt of the user. */
  #outdatedRooms(rooms: readonly UserRoom[], badge: Badge, changedRooms: ReadonlySet<string>): UserRoom[] {
    const { unread } = this.#deps;
    return rooms.filter(
      ({ roomId, membership }) =>
        membership === 'join' && (changedRooms.has(roomId) || unread.newestEventOf(roomId) > badge.upTo),
    );
  }

  /** Counts rooms again. When there are many, rooms without an event after the user's receipt are not loaded. */
  async #recount(userId: string, { rooms }: Badge, outdated: readonly UserRoom[], upTo: number) {
    const { engine, receipts, unread } = this.#deps;
    const areFew = outdated.length <= roomsAtOnce;
    const newestPositions = areFew
      ? undefined
      : await engine.events.newestPositions(outdated.map((room) => room.roomNid));
    await mapConcurrently(outdated, roomsAtOnce, async ({ roomId, roomNid }) => {
      const { room: readPosition } = await receipts.readUpTo(userId, roomId);
      const isRead = newestPositions !== undefined && (newestPositions.get(roomNid) ?? 0) <= readPosition;
      const count = isRead ? 0 : sumOf(await unread.counts(userId, roomId, upTo));
      if (count === 0) rooms.delete(roomId);
      else rooms.set(roomId, count);
    });
  }

  /** Returns the senders of invites; the senders of invites since the last count are read with one query. */
  async #inviters({ inviters }: Badge, invites: readonly UserRoom[]): Promise<ReadonlyMap<number, string>> {
    const nids = invites.map(({ eventNid }) => eventNid);
    const newNids = nids.filter((nid) => !inviters.has(nid));
    const newInvites = await this.#deps.engine.events.getMany(newNids);
    const senderOf = (nid: number) => inviters.get(nid) ?? newInvites.get(nid)?.event.sender;
    return new Map(
      nids.flatMap((nid) => {
        const sender = senderOf(nid);
        return sender === undefined ? [] : [[nid, sender]];
      }),
    );
  }

  /** Counts the invites that the user sees. The user's permissions for invites may hide the invites of some senders. */
  async #countShownInvites(userId: string, { inviters }: Badge): Promise<number> {
    let shown = 0;
    for (const [sender, invites] of Map.groupBy(inviters.values(), (inviter) => inviter)) {
      const decision = await this.#deps.invitePolicy.decide(userId, sender);
      if (decision === 'allow') shown += invites.length;
    }
    return shown;
  }
}

function sumOf({ notification_count, threads }: UnreadCounts): number {
  let sum = notification_count;
  for (const thread of threads.values()) sum += thread.notification_count;
  return sum;
}
