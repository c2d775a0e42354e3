import type { Cache, CacheRegistry } from '../../kernel/caches/index.ts';
import { LoadOnce } from '../../kernel/load-once.ts';
import { isStorableText } from '../event-to-send.ts';
import type { RoomRemoval } from '../room-removals.ts';
import type { RoomFact } from '../stored-event.ts';
import { FollowedHead } from './followed-head.ts';
import { maxHeadBytes, sizeOfHead } from './head-size.ts';
import type { HeadReader } from './room-head.ts';
import type { StoredHeads } from './stored-heads.ts';

/**
 * The heads of active rooms in a process that does not write rooms: read from the database, then updated by facts,
 * which describe the changes that the main process makes.
 */
export class FollowedHeads implements HeadReader {
  readonly #stored: StoredHeads;
  readonly #cache: Cache<string, FollowedHead>;
  readonly #loading = new LoadOnce<string, FollowedHead | undefined>();
  /**
   * By room id, the facts that arrived while the head of the room was being read; `deleted` stands for the deletion of
   * the room.
   */
  readonly #missed = new Map<string, (RoomFact | 'deleted')[]>();

  constructor(stored: StoredHeads, caches: CacheRegistry) {
    this.#stored = stored;
    this.#cache = caches.create('room_heads', { maxBytes: maxHeadBytes, sizeOf: (head) => sizeOfHead(head) });
  }

  peek(roomId: string): FollowedHead | undefined {
    return this.#cache.get(roomId);
  }

  async get(roomId: string): Promise<FollowedHead | undefined> {
    const cached = this.peek(roomId);
    if (cached || !isStorableText(roomId)) return cached;
    return this.#loading.run(roomId, () => this.#load(roomId));
  }

  /**
   * Updates the head of the fact's room. A fact without `end` does not describe the whole change: the head is dropped,
   * and read again when it is needed.
   */
  follow(fact: RoomFact): void {
    const { roomId } = fact;
    this.#missed.get(roomId)?.push(fact);
    const head = this.#cache.peek(roomId);
    if (!head) return;
    if (!fact.end) {
      this.#cache.delete(roomId);
      return;
    }
    head.follow(fact);
    this.#cache.remeasure(roomId);
  }

  /** Drops the head of a deleted room, and deleted events of a room that stays. */
  followRemoval(removal: RoomRemoval): void {
    if (removal.kind === 'pruned' && removal.roomId !== undefined)
      this.#cache.peek(removal.roomId)?.forgetEvents(new Set(removal.eventNids));
    if (removal.kind !== 'purged') return;
    this.#missed.get(removal.roomId)?.push('deleted');
    this.#cache.delete(removal.roomId);
  }

  async #load(roomId: string): Promise<FollowedHead | undefined> {
    for (;;) {
      const missed: (RoomFact | 'deleted')[] = [];
      this.#missed.set(roomId, missed);
      const stored = await this.#stored.read(roomId).finally(() => this.#missed.delete(roomId));
      // A change that no fact describes fully, or a deletion, came between the reads, so only some of the rows may
      // contain it: read again.
      const facts = missed.filter((fact) => fact !== 'deleted' && fact.end !== undefined) as RoomFact[];
      if (facts.length < missed.length) continue;
      if (!stored) return undefined;
      const head = new FollowedHead(stored);
      for (const fact of facts) head.follow(fact);
      this.#cache.set(roomId, head);
      return head;
    }
  }
}
