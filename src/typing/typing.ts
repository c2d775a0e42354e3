import type { Cache, CacheRegistry } from '../kernel/caches/index.ts';
import type { Clock, Timer } from '../kernel/clock.ts';
import { jsonFacts, Stream, type StreamWriter } from '../kernel/streams/index.ts';
import type { RoomFact } from '../room-engine/index.ts';

/** A user has begun or stopped typing in a room. */
export interface TypingChange {
  readonly roomId: string;
  readonly userId: string;
  readonly typing: boolean;
}

export interface TypingDeps {
  readonly caches: CacheRegistry;
  readonly streams: StreamWriter;
  readonly clock: Clock;
  /** The stream of rooms: typing ends when a user leaves the room. */
  readonly roomStream: Stream<RoomFact>;
  /** Whether another process writes, so that this process takes the changes from the stream. */
  readonly follows?: boolean;
}

/**
 * Maximum timeout of a typing notification, in milliseconds; clients repeat the notification while the user continues
 * typing.
 */
const maxTimeout = 120_000;

/** Maximum number of typing users in one room: clients show only a few. */
const maxInRoom = 100;

/** Maximum number of typing users in all rooms together. */
const maxTypingUsers = 100_000;

/** Maximum number of rooms whose position of the last change is cached. */
const maxCachedRooms = 10_000;

const noUsers: ReadonlySet<string> = new Set();

/**
 * The typing users of all rooms, in memory: none after a restart, until clients repeat their notifications.
 * Source: client-server API, "Typing Notifications".
 */
export class Typing {
  readonly typingStream = new Stream<TypingChange>('typing', jsonFacts());
  readonly #streams: StreamWriter;
  readonly #clock: Clock;
  /** Room id to user id to the timer that ends the notification; `undefined` when another process ends it. */
  readonly #rooms = new Map<string, Map<string, Timer | undefined>>();
  /** Position of the last change of each room, by room id. */
  readonly #changes: Cache<string, number>;
  /** Number of typing users in all rooms together. */
  #count = 0;

  constructor({ streams, clock, caches, roomStream, follows = false }: TypingDeps) {
    this.#changes = caches.create('typing_changes', { size: maxCachedRooms });
    this.#streams = streams;
    this.#clock = clock;
    this.typingStream.subscribe((change, position) => {
      this.#changes.set(change.roomId, position);
      if (follows) this.#follow(change);
    });
    if (follows) return;
    roomStream.subscribe(({ roomId, membershipChanges }) => {
      for (const { userId, to } of membershipChanges) if (to !== 'join') this.#stop(roomId, userId);
    });
  }

  /**
   * Sets whether a user is typing. The caller has checked that they are joined to the room.
   * @param timeout milliseconds until the notification ends unless it is repeated; bounded
   */
  set(userId: string, roomId: string, typing: boolean, timeout: number): void {
    const bounded = Math.min(timeout, maxTimeout);
    if (!typing || !(bounded > 0)) this.#stop(roomId, userId);
    else this.#start(roomId, userId, bounded);
  }

  /** Returns the typing users of a room except for `ignored`, the first to begin first. */
  inRoom(roomId: string, ignored: ReadonlySet<string> = noUsers): string[] {
    const typists = this.#rooms.get(roomId);
    return typists ? [...typists.keys()].filter((userId) => !ignored.has(userId)) : [];
  }

  /** Whether `inRoom` has changed after a position. A room without a cached position counts as unchanged. */
  changedSince(roomId: string, position: number): boolean {
    return (this.#changes.get(roomId) ?? 0) > position;
  }

  /** Ends all typing notifications without announcing these changes. */
  close(): void {
    for (const typists of this.#rooms.values()) for (const timer of typists.values()) timer?.cancel();
    this.#rooms.clear();
    this.#count = 0;
  }

  /** Applies a change that the main process announced. */
  #follow({ roomId, userId, typing }: TypingChange): void {
    const typists = this.#rooms.get(roomId);
    if (typists?.has(userId) === typing) return;
    if (typing) {
      this.#count++;
      this.#rooms.set(roomId, (typists ?? new Map()).set(userId, undefined));
      return;
    }
    if (!typists?.delete(userId)) return;
    this.#count--;
    if (typists.size === 0) this.#rooms.delete(roomId);
  }

  #start(roomId: string, userId: string, timeout: number): void {
    const typists = this.#rooms.get(roomId) ?? new Map<string, Timer | undefined>();
    const before = typists.get(userId);
    if (!before && (typists.size >= maxInRoom || this.#count >= maxTypingUsers)) return;
    before?.cancel();
    typists.set(
      userId,
      this.#clock.setTimer(timeout, () => this.#stop(roomId, userId)),
    );
    if (before) return;
    this.#count++;
    this.#rooms.set(roomId, typists);
    this.#streams.announce(this.typingStream, { roomId, userId, typing: true });
  }

  #stop(roomId: string, userId: string): void {
    const typists = this.#rooms.get(roomId);
    const timer = typists?.get(userId);
    if (!typists || !timer) return;
    timer.cancel();
    typists.delete(userId);
    this.#count--;
    if (typists.size === 0) this.#rooms.delete(roomId);
    this.#streams.announce(this.typingStream, { roomId, userId, typing: false });
  }
}
