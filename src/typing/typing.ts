import { RecentlyUsed } from '../kernel/caches/index.ts';
import type { Clock, Timer } from '../kernel/clock.ts';
import { jsonFacts, Stream, type StreamWriter } from '../kernel/streams/index.ts';
import type { RoomFact } from '../room-engine/index.ts';

/** Somebody has begun or ceased to type in a room. */
export interface TypingChange {
  readonly roomId: string;
  readonly userId: string;
  readonly typing: boolean;
}

export interface TypingDeps {
  readonly streams: StreamWriter;
  readonly clock: Clock;
  /** The stream of rooms: whoever leaves one does not type there any more. */
  readonly roomStream: Stream<RoomFact>;
  /** Another process writes: this one takes its notices from the stream. */
  readonly follows?: boolean;
}

/** Milliseconds that a notice may hold at most; clients repeat it while the user goes on. */
const longestTimeout = 120_000;

/** How many users type in one room at most, and in all rooms together: nobody reads a longer list. */
const [maxInRoom, maxTypists] = [100, 100_000];

/** Of how many rooms it is remembered when somebody last began or ceased to type. */
const roomsRemembered = 50_000;

const nobody: ReadonlySet<string> = new Set();

/**
 * Who is typing where, in memory: after a restart nobody is, until the clients say so again.
 * Source: client-server API, "Typing Notifications".
 */
export class Typing {
  readonly typingStream = new Stream<TypingChange>('typing', jsonFacts());
  readonly #streams: StreamWriter;
  readonly #clock: Clock;
  /** Room id to user id to the end of the notice; `undefined` for a notice that another process ends. */
  readonly #rooms = new Map<string, Map<string, Timer | undefined>>();
  readonly #changes = new RecentlyUsed<string, number>({ max: roomsRemembered });
  #count = 0;

  constructor({ streams, clock, roomStream, follows = false }: TypingDeps) {
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
   * Notes that a user types, or does not. Whether they may, the caller has checked.
   * @param timeout milliseconds for which it holds unless it is said again; bounded
   */
  set(userId: string, roomId: string, typing: boolean, timeout: number): void {
    const bounded = Math.min(timeout, longestTimeout);
    if (!typing || !(bounded > 0)) this.#stop(roomId, userId);
    else this.#start(roomId, userId, bounded);
  }

  /** The users who type in a room but for `ignored`, those who began first before the others. */
  inRoom(roomId: string, ignored: ReadonlySet<string> = nobody): string[] {
    const typists = this.#rooms.get(roomId);
    return typists ? [...typists.keys()].filter((userId) => !ignored.has(userId)) : [];
  }

  /** Whether `inRoom` has changed after that position. A room that was quiet for long counts as unchanged. */
  changedSince(roomId: string, position: number): boolean {
    return (this.#changes.get(roomId) ?? 0) > position;
  }

  /** Ends all notices without telling anybody. */
  close(): void {
    for (const typists of this.#rooms.values()) for (const timer of typists.values()) timer?.cancel();
    this.#rooms.clear();
    this.#count = 0;
  }

  /** Takes a change of the process that writes. */
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
    if (!before && (typists.size >= maxInRoom || this.#count >= maxTypists)) return;
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
