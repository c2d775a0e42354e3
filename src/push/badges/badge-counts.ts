import { type Cache, type CacheRegistry, MiB } from '../../kernel/caches/index.ts';
import { KeyedMutex } from '../../kernel/keyed-mutex.ts';
import type { StreamReader } from '../../kernel/streams/index.ts';
import type { Receipts } from '../../receipts/index.ts';
import type { RoomReader, UserRoom } from '../../room-engine/index.ts';
import type { InvitePolicy } from '../../rooms/index.ts';
import type { UnreadCounts } from '../unread/tally.ts';
import type { Unread } from '../unread/unread.ts';

export interface BadgeCountsDeps {
  readonly caches: CacheRegistry;
  readonly streams: StreamReader;
  readonly engine: RoomReader;
  readonly receipts: Pick<Receipts, 'receiptStream'>;
  readonly unread: Unread;
  /** The users' permissions for invites. */
  readonly invitePolicy: InvitePolicy;
  /** `push.group_unread_count_by_room`: rooms are counted; when false, unread notifications are. */
  readonly countsRooms: boolean;
}

/** The unread rooms of a user, as they were counted last. */
interface Badge {
  /** Facts of rooms up to here are counted. */
  upTo: number;
  /** Unread notifications by room id; rooms without any are absent. */
  readonly rooms: Map<string, number>;
  /** Rooms with a receipt of the user since. */
  changed: Set<string>;
}

/** Bounds the users whose unread rooms are cached. */
const maxUsers = 20_000;

/**
 * Counts what is unread in all rooms of a user, for the number that apps show at their icon. Only rooms with newer
 * events or receipts are counted again.
 */
export class BadgeCounts {
  readonly #deps: BadgeCountsDeps;
  readonly #badges: Cache<string, Badge>;
  readonly #users = new KeyedMutex();
  constructor(deps: BadgeCountsDeps) {
    this.#deps = deps;
    this.#badges = deps.caches.create('badges', {
      size: maxUsers,
      maxBytes: 2 * MiB,
      sizeOf: ({ rooms }) => 200 + 80 * rooms.size,
    });
    deps.receipts.receiptStream.subscribe(({ userId, roomId }) => {
      this.#badges.peek(userId)?.changed.add(roomId);
    });
  }

  /**
   * Returns the number of invites and, by `push.group_unread_count_by_room`, of joined rooms with unread notifications
   * or of unread notifications, those of threads included.
   */
  of(userId: string): Promise<number> {
    return this.#users.run(userId, () => this.#count(userId));
  }

  async #count(userId: string): Promise<number> {
    const { engine, streams, unread, countsRooms } = this.#deps;
    const rooms = await engine.userRooms.of(userId);
    const badge = this.#badges.get(userId) ?? { upTo: -1, rooms: new Map(), changed: new Set() };
    const { changed } = badge;
    const upTo = streams.current;
    badge.changed = new Set();
    try {
      let total = 0;
      for (const room of rooms.values()) {
        const { roomId, membership } = room;
        if (membership === 'invite') total += (await this.#isShown(userId, room)) ? 1 : 0;
        if (membership !== 'join') continue;
        if (changed.has(roomId) || unread.newestEventOf(roomId) > badge.upTo) {
          const counts = unread.counts(userId, roomId, upTo);
          const count = sumOf(counts instanceof Promise ? await counts : counts);
          if (count === 0) badge.rooms.delete(roomId);
          else badge.rooms.set(roomId, count);
        }
        const count = badge.rooms.get(roomId) ?? 0;
        total += countsRooms ? Math.min(1, count) : count;
      }
      badge.upTo = upTo;
      this.#badges.set(userId, badge);
      return total;
    } catch (error) {
      for (const roomId of changed) badge.changed.add(roomId);
      throw error;
    }
  }

  async #isShown(userId: string, { eventNid }: UserRoom): Promise<boolean> {
    const { engine, invitePolicy } = this.#deps;
    const invite = await engine.events.get(eventNid);
    return invite !== undefined && (await invitePolicy.decide(userId, invite.event.sender)) === 'allow';
  }
}

function sumOf({ notification_count, threads }: UnreadCounts): number {
  let sum = notification_count;
  for (const thread of threads.values()) sum += thread.notification_count;
  return sum;
}
