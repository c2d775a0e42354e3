import type { Clock, Timer } from '../kernel/clock.ts';
import type { Logger } from '../kernel/observability/index.ts';
import { Stream, type StreamWriter } from '../kernel/streams/index.ts';
import type { RoomReader } from '../room-engine/index.ts';
import { presenceFacts } from './presence-fact.ts';
import type { PresenceStatus } from './presence-status.ts';

export interface AnnouncementsDeps {
  readonly engine: RoomReader;
  readonly streams: StreamWriter;
  readonly clock: Clock;
  readonly log: Logger;
}

interface Pending {
  readonly status: PresenceStatus;
  /** `undefined`: all rooms of the user. */
  readonly rooms: ReadonlySet<string> | undefined;
}

/** Joined members of a room beyond whom its members are not told of each other's presence. */
export const maxMembers = 1_000;

/** Milliseconds for which changes are collected before they are announced together: least and most. */
const [shortestPause, longestPause] = [500, 60_000];

/** How many members may be told of a change in a second, in the long run. Pauses grow with what was announced. */
const toldPerSecond = 2_000;

/** Collects changes of presence and announces them together, less often the more people hear of them. */
export class Announcements {
  readonly stream = new Stream('presence', presenceFacts);
  readonly #deps: AnnouncementsDeps;
  #pending = new Map<string, Pending>();
  #timer: Timer | undefined;
  #announcing: Promise<void> = Promise.resolve();
  /** Nothing is announced before this time of the monotonic clock. */
  #notBefore = 0;
  #closed = false;

  constructor(deps: AnnouncementsDeps) {
    this.#deps = deps;
  }

  /** @param roomId only in this room, where the user is new */
  add(userId: string, status: PresenceStatus, roomId?: string): void {
    if (this.#closed) return;
    const before = this.#pending.get(userId);
    const everywhere = roomId === undefined || (before !== undefined && before.rooms === undefined);
    const rooms = everywhere ? undefined : new Set([...(before?.rooms ?? []), roomId]);
    this.#pending.set(userId, { status, rooms });
    this.#schedule();
  }

  /** Resolves when what is being announced has been: for tests. */
  async settled(): Promise<void> {
    await this.#announcing;
  }

  /** Announces nothing any more. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    await this.#announcing;
  }

  #schedule(): void {
    if (this.#timer) return;
    const { clock, log } = this.#deps;
    const pause = Math.max(shortestPause, this.#notBefore - clock.monotonic());
    this.#timer = clock.setTimer(pause, () => {
      this.#announcing = this.#announce()
        .catch((error: unknown) => log.error({ err: error }, 'presence could not be announced'))
        .finally(() => {
          this.#timer = undefined;
          if (this.#pending.size > 0 && !this.#closed) this.#schedule();
        });
    });
  }

  async #announce(): Promise<void> {
    const pending = this.#pending;
    this.#pending = new Map();
    const rooms = new Map<string, string[]>();
    const changes = new Map<string, PresenceStatus>();
    let told = 0;
    for (const [userId, { status, rooms: only }] of pending) {
      changes.set(userId, status);
      for (const roomId of only ?? (await this.#roomsOf(userId))) {
        const members = (await this.#deps.engine.heads.get(roomId))?.memberCount('join') ?? 0;
        if (members > maxMembers) continue;
        told += members;
        const users = rooms.get(roomId);
        if (users) users.push(userId);
        else rooms.set(roomId, [userId]);
      }
    }
    const { streams, clock } = this.#deps;
    this.#notBefore = clock.monotonic() + Math.min(longestPause, (told * 1_000) / toldPerSecond);
    if (!this.#closed) streams.announce(this.stream, { changes, rooms });
  }

  #roomsOf(userId: string): Promise<string[]> {
    return this.#deps.engine.userRooms.withMembership(userId, 'join');
  }
}
