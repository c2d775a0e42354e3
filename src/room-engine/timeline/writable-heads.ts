import type { Cache, CacheRegistry } from '../../kernel/caches/index.ts';
import { LoadOnce } from '../../kernel/load-once.ts';
import type { RoomVersion } from '../../protocol/index.ts';
import type { RoomRemoval } from '../room-removals.ts';
import { GroupChain } from '../state/group-chain.ts';
import type { StateGroups } from '../state/state-groups.ts';
import { isStorableText } from './event-to-send.ts';
import { maxHeadBytes, sizeOfHead } from './head-size.ts';
import { HeadState } from './head-state.ts';
import type { HeadReader } from './room-head.ts';
import type { StoredHeads } from './stored-heads.ts';
import { WritableHead } from './writable-head.ts';

/**
 * The heads of active rooms. A room never has two heads in use: a head that is referenced anywhere, for
 * instance by a pending write, is returned even when the cache has dropped it.
 */
export class WritableHeads implements HeadReader {
  readonly #stored: StoredHeads;
  readonly #groups: StateGroups;
  readonly #cache: Cache<string, WritableHead>;
  readonly #inUse = new Map<string, WeakRef<WritableHead>>();
  readonly #unused = new FinalizationRegistry<string>((roomId) => {
    if (!this.#inUse.get(roomId)?.deref()) this.#inUse.delete(roomId);
  });
  readonly #loading = new LoadOnce<string, WritableHead | undefined>();
  /** Promises by room that resolve when the last events of its broken head have settled. */
  readonly #settling = new Map<string, Promise<void>>();
  /** Rooms that are being deleted. */
  readonly #retired = new Set<string>();

  constructor(stored: StoredHeads, groups: StateGroups, caches: CacheRegistry) {
    this.#stored = stored;
    this.#groups = groups;
    this.#cache = caches.create('room_heads', { maxBytes: maxHeadBytes, sizeOf: (head) => sizeOfHead(head) });
  }

  /** Returns a cached head. */
  peek(roomId: string): WritableHead | undefined {
    if (this.#retired.has(roomId)) return undefined;
    const cached = this.#cache.get(roomId);
    if (cached) return cached;
    const head = this.#inUse.get(roomId)?.deref();
    if (!head || head.broken) return undefined;
    this.#cache.set(roomId, head);
    return head;
  }

  /** Returns the head of a room; `undefined` when the room is unknown. */
  async get(roomId: string): Promise<WritableHead | undefined> {
    const known = this.peek(roomId);
    if (known) return known;
    if (!isStorableText(roomId) || this.#retired.has(roomId)) return undefined;
    return this.#loading.run(roomId, async () => {
      await this.#settling.get(roomId);
      return this.#load(roomId);
    });
  }

  /** Creates the head of a new room; other callers receive it after `register`. */
  createHead(roomNid: number, roomId: string, version: RoomVersion): WritableHead {
    const parts = { roomNid, roomId, version, extremities: [], state: new HeadState() };
    return new WritableHead({ ...parts, chain: new GroupChain() });
  }

  /** Makes this the head of its room. */
  register(head: WritableHead): void {
    this.#inUse.set(head.roomId, new WeakRef(head));
    this.#unused.register(head, head.roomId);
    this.#cache.set(head.roomId, head);
  }

  /** Drops a head whose last events could not be stored; the next reader loads it again. */
  abandon(head: WritableHead): void {
    head.broken = true;
    if (this.#cache.peek(head.roomId) === head) this.#cache.delete(head.roomId);
  }

  /**
   * Abandons a head whose last events are still being committed: it is loaded again when they have settled.
   */
  abandonAfter(head: WritableHead, settled: Promise<void>): void {
    const { roomId } = head;
    this.abandon(head);
    const settling = settled.finally(() => {
      if (this.#settling.get(roomId) === settling) this.#settling.delete(roomId);
    });
    this.#settling.set(roomId, settling);
  }

  /** Hides the head of a room that is being deleted, and breaks it, so that pending writers find no room. */
  block(roomId: string): void {
    this.#retired.add(roomId);
    const head = this.#inUse.get(roomId)?.deref() ?? this.#cache.peek(roomId);
    if (head) this.abandon(head);
  }

  /** Undoes `block`: the head is loaded again if the room still exists. */
  unblock(roomId: string): void {
    this.#retired.delete(roomId);
  }

  /** Removes deleted events from the head of a room that is not deleted itself. */
  followRemoval(removal: RoomRemoval): void {
    if (removal.kind === 'pruned' && removal.roomId !== undefined)
      this.peek(removal.roomId)?.forgetEvents(new Set(removal.eventNids));
  }

  /** Measures a head again for the size of the cache. */
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
