import type { Cache, CacheRegistry } from '../../kernel/caches/index.ts';
import { LoadOnce } from '../../kernel/load-once.ts';
import type { RoomVersion } from '../../protocol/index.ts';
import { isStorableText } from '../event-to-send.ts';
import type { RoomRemoval } from '../room-removals.ts';
import { GroupChain } from '../state/group-chain.ts';
import type { StateGroups } from '../state/state-groups.ts';
import { maxHeadBytes, sizeOfHead } from './head-size.ts';
import { HeadState } from './head-state.ts';
import type { HeadReader } from './room-head.ts';
import type { StoredHeads } from './stored-heads.ts';
import { WritableHead } from './writable-head.ts';

/**
 * The heads of active rooms: their current states, forward extremities and newest events, in memory. A room never has
 * two heads in use: a head that other code still references, for instance a pending write, is returned even when the
 * cache has dropped it.
 */
export class WritableHeads implements HeadReader {
  readonly #stored: StoredHeads;
  readonly #groups: StateGroups;
  readonly #cache: Cache<string, WritableHead>;
  /** The heads that are in the cache or that other code still references, by room id. */
  readonly #headRefs = new Map<string, WeakRef<WritableHead>>();
  readonly #onCollected = new FinalizationRegistry<string>((roomId) => {
    if (!this.#headRefs.get(roomId)?.deref()) this.#headRefs.delete(roomId);
  });
  readonly #loading = new LoadOnce<string, WritableHead | undefined>();
  /**
   * For each room with a broken head, a promise that resolves when the last events of that head are on disk or have
   * failed.
   */
  readonly #settling = new Map<string, Promise<void>>();
  /** Rooms that are being deleted. */
  readonly #blocked = new Set<string>();

  constructor(stored: StoredHeads, groups: StateGroups, caches: CacheRegistry) {
    this.#stored = stored;
    this.#groups = groups;
    this.#cache = caches.create('room_heads', { maxBytes: maxHeadBytes, sizeOf: (head) => sizeOfHead(head) });
  }

  /** Returns a cached head. */
  peek(roomId: string): WritableHead | undefined {
    if (this.#blocked.has(roomId)) return undefined;
    const cached = this.#cache.get(roomId);
    if (cached) return cached;
    const head = this.#headRefs.get(roomId)?.deref();
    if (!head || head.broken) return undefined;
    this.#cache.set(roomId, head);
    return head;
  }

  /** Returns the head of a room; `undefined` when the room is unknown or is being deleted. */
  async get(roomId: string): Promise<WritableHead | undefined> {
    const loaded = this.peek(roomId);
    if (loaded) return loaded;
    if (!isStorableText(roomId) || this.#blocked.has(roomId)) return undefined;
    return this.#loading.run(roomId, async () => {
      await this.#settling.get(roomId);
      return this.#load(roomId);
    });
  }

  /** Creates the head of a new room; other callers receive it after `register`. */
  createHead(roomNid: number, roomId: string, version: RoomVersion): WritableHead {
    const fields = { roomNid, roomId, version, extremities: [], state: new HeadState() };
    return new WritableHead({ ...fields, chain: new GroupChain() });
  }

  /** Stores a head as the head of its room. */
  register(head: WritableHead): void {
    this.#headRefs.set(head.roomId, new WeakRef(head));
    this.#onCollected.register(head, head.roomId);
    this.#cache.set(head.roomId, head);
  }

  /** Drops a head whose last events could not be stored; the next `get` loads it again. */
  abandon(head: WritableHead): void {
    head.broken = true;
    if (this.#cache.peek(head.roomId) === head) this.#cache.delete(head.roomId);
  }

  /** Abandons a head whose last events are still being committed: it is loaded again when they have settled. */
  abandonAfter(head: WritableHead, settled: Promise<void>): void {
    const { roomId } = head;
    this.abandon(head);
    const settling = settled.finally(() => {
      if (this.#settling.get(roomId) === settling) this.#settling.delete(roomId);
    });
    this.#settling.set(roomId, settling);
  }

  /**
   * Hides the head of a room that is being deleted, and marks it as broken, so that pending writers do not find the
   * room.
   */
  block(roomId: string): void {
    this.#blocked.add(roomId);
    const head = this.#headRefs.get(roomId)?.deref() ?? this.#cache.peek(roomId);
    if (head) this.abandon(head);
  }

  /** Undoes `block`: the head is loaded again if the room still exists. */
  unblock(roomId: string): void {
    this.#blocked.delete(roomId);
  }

  /** Removes deleted events from the head of a room that is not deleted itself. */
  followRemoval(removal: RoomRemoval): void {
    if (removal.kind === 'pruned' && removal.roomId !== undefined)
      this.peek(removal.roomId)?.forgetEvents(new Set(removal.eventNids));
  }

  /** Measures the size of a head again for the limit of the cache. */
  resized(head: WritableHead): void {
    if (this.#cache.peek(head.roomId) === head) this.#cache.remeasure(head.roomId);
  }

  async #load(roomId: string): Promise<WritableHead | undefined> {
    const stored = await this.#stored.read(roomId);
    if (!stored) return undefined;
    const { stateGroup } = stored;
    const chain = stateGroup === undefined ? new GroupChain() : await this.#groups.chain(stateGroup);
    const head = new WritableHead({ ...stored, chain });
    this.register(head);
    return head;
  }
}
