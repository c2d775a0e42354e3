import { type Cache, type CacheRegistry, MiB } from '../../kernel/caches/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import { LoadOnce } from '../../kernel/load-once.ts';
import type { StreamReader } from '../../kernel/streams/index.ts';
import type { RoomFact, RoomReader } from '../../room-engine/index.ts';
import type { SyncSource } from '../../sync-contract/index.ts';
import { timelineBit } from '../sources/source-list.ts';
import { Feed } from './feed.ts';
import { WakeQueue } from './wake-queue.ts';

/** Maximum number of feeds in memory. */
const maxFeeds = 20_000;

export interface FeedsDeps {
  readonly engine: RoomReader;
  readonly streams: StreamReader;
  readonly clock: Clock;
  readonly caches: CacheRegistry;
}

/**
 * The feeds of users who sync. A feed lists the recent changes that concern its user. Adds each change that the streams
 * deliver to the feeds of the users whom it concerns.
 */
export class Feeds {
  readonly #engine: RoomReader;
  readonly #streams: StreamReader;
  readonly #clock: Clock;
  readonly #feeds: Cache<string, Feed>;
  readonly #opening = new LoadOnce<string, Feed>();
  /** The feeds of joined users, by room id. */
  readonly #listeners = new Map<string, Set<Feed>>();
  /**
   * Feeds and rooms with changes since the current position of the streams last advanced. Requests that wait for them
   * are woken when this position advances.
   */
  readonly #changed = { feeds: new Set<Feed>(), rooms: new Set<string>() };
  readonly #waking: WakeQueue;

  /** @param size maximum number of feeds, for tests */
  constructor({ engine, streams, clock, caches }: FeedsDeps, size = maxFeeds) {
    this.#engine = engine;
    this.#streams = streams;
    this.#clock = clock;
    this.#feeds = caches.create('feeds', {
      size,
      maxBytes: 16 * MiB,
      sizeOf: ({ bytes }) => bytes,
      onRemove: (feed) => this.#drop(feed),
    });
    this.#waking = new WakeQueue(clock, (roomId) => this.#listeners.get(roomId) ?? []);
    engine.stream.subscribe((fact, position) => this.#roomChanged(fact, position));
    streams.onAdvance((current) => this.#wake(current));
  }

  /** Adds the changes of a source to feeds. The bit stands for the source there. */
  follow({ bit, source }: { readonly bit: number; readonly source: SyncSource }): void {
    source.follow({
      followRooms: (stream, roomOf) =>
        stream.subscribe((fact, position) => this.#addToRoom(roomOf(fact), position, bit)),
      followUsers: (stream, usersOf, roomOf) =>
        stream.subscribe((fact, position) => {
          for (const userId of usersOf(fact)) this.#addToUser(userId, position, roomOf?.(fact), bit);
        }),
      followMembers: (stream, roomsOf) =>
        stream.subscribe((fact, position) => {
          const rooms = roomsOf(fact);
          if (!(rooms instanceof Promise)) {
            for (const feed of this.#addToMembers(rooms, position, bit)) this.#changed.feeds.add(feed);
            return;
          }
          void rooms.then((loadedRooms) => {
            this.#waking.wake(this.#addToMembers(loadedRooms, this.#streams.current, bit));
          });
        }),
    });
  }

  /** Returns the feed of a user who has synced recently. */
  peek(userId: string): Feed | undefined {
    return this.#feeds.get(userId);
  }

  /** Returns the feed of a user, or opens one. An open feed receives all changes until it is dropped. */
  async open(userId: string): Promise<Feed> {
    const cached = this.#feeds.get(userId);
    if (cached) return cached;
    return this.#opening.run(userId, () => this.#open(userId));
  }

  /**
   * Resolves at the next change, after `timeout` milliseconds, or when `signal` aborts. Resolves at once when the feed
   * was dropped before the call, because a dropped feed receives no more changes.
   */
  wait(feed: Feed, timeout: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal.aborted || this.#feeds.peek(feed.userId) !== feed) return resolve();
      const resume = () => {
        timer.cancel();
        stopWaiting();
        signal.removeEventListener('abort', resume);
        resolve();
      };
      const timer = this.#clock.setTimer(timeout, resume);
      const stopWaiting = feed.onChange(resume);
      signal.addEventListener('abort', resume, { once: true });
    });
  }

  async #open(userId: string): Promise<Feed> {
    const rooms = await this.#engine.userRooms.of(userId);
    // Nothing is awaited between reading the rooms and listening, so that no change is missed.
    const feed = new Feed(userId, this.#streams.current, () => this.#feeds.remeasure(userId));
    this.#feeds.set(userId, feed);
    for (const room of rooms.values()) if (room.membership === 'join') this.#listen(room.roomId, feed);
    return feed;
  }

  #roomChanged(fact: RoomFact, position: number): void {
    const { roomId, onTimeline, completesState, stateChanges, membershipChanges } = fact;
    for (const { userId, to } of membershipChanges) {
      const feed = this.#feeds.peek(userId);
      if (!feed) continue;
      this.#addToUser(userId, position, roomId, timelineBit);
      if (to === 'join') this.#listen(roomId, feed);
      else this.#stopListening(roomId, feed);
    }
    // Syncs that need all members leave a room out while its state is partial: the completion is a change for them,
    // even when it changes no state.
    if (!onTimeline && !completesState && stateChanges.length === 0) return;
    for (const feed of this.#listeners.get(roomId) ?? []) feed.add(position, roomId, timelineBit);
    this.#changed.rooms.add(roomId);
  }

  #addToRoom(roomId: string, position: number, changedBits: number): void {
    for (const feed of this.#listeners.get(roomId) ?? []) {
      feed.add(position, roomId, changedBits);
      this.#changed.feeds.add(feed);
    }
  }

  /** @returns the feeds of all users who are joined to one of the rooms */
  #addToMembers(roomIds: Iterable<string>, position: number, changedBits: number): ReadonlySet<Feed> {
    const feeds = new Set<Feed>();
    for (const roomId of roomIds) for (const feed of this.#listeners.get(roomId) ?? []) feeds.add(feed);
    for (const feed of feeds) feed.add(position, undefined, changedBits);
    return feeds;
  }

  #addToUser(userId: string, position: number, roomId: string | undefined, changedBits: number): void {
    const feed = this.#feeds.peek(userId);
    if (!feed) return;
    feed.add(position, roomId, changedBits);
    this.#changed.feeds.add(feed);
  }

  #wake(current: number): void {
    const { feeds, rooms } = this.#changed;
    for (const roomId of rooms) {
      const newest = this.#engine.heads.peek(roomId)?.recent.at(-1)?.stream ?? 0;
      this.#waking.wakeRoom(roomId, current, newest);
    }
    rooms.clear();
    this.#waking.wake(feeds);
    feeds.clear();
  }

  #listen(roomId: string, feed: Feed): void {
    const listeners = this.#listeners.get(roomId);
    if (listeners) listeners.add(feed);
    else this.#listeners.set(roomId, new Set([feed]));
  }

  #stopListening(roomId: string, feed: Feed): void {
    const listeners = this.#listeners.get(roomId);
    if (listeners?.delete(feed) && listeners.size === 0) this.#listeners.delete(roomId);
  }

  /** Stops adding changes to a dropped feed, and wakes the requests that wait on it, which then open a new feed. */
  #drop(feed: Feed): void {
    for (const roomId of this.#listeners.keys()) this.#stopListening(roomId, feed);
    feed.wake();
  }
}
