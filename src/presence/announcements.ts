import type { Clock, Timer } from '../kernel/clock.ts';
import type { Logger } from '../kernel/observability/index.ts';
import { Stream, type StreamWriter } from '../kernel/streams/index.ts';
import type { RoomReader } from '../room-engine/index.ts';
import { presenceFacts } from './presence-fact.ts';
import type { PresenceRouting } from './presence-routing.ts';
import type { PresenceStatus } from './presence-status.ts';

export interface AnnouncementsDeps {
  readonly engine: RoomReader;
  readonly streams: StreamWriter;
  readonly clock: Clock;
  readonly log: Logger;
  /** Selects further users to notify; absent: only users who share a room are notified. */
  readonly routing?: PresenceRouting | undefined;
}

/** A change of one user's presence that waits for the next announcement. */
interface Pending {
  readonly status: PresenceStatus;
  /** The rooms whose members are notified; `undefined`: all rooms of the user. */
  readonly rooms: ReadonlySet<string> | undefined;
}

/** Milliseconds before the next attempt when an announcement has failed. */
const retryPause = 5_000;

/** In rooms with more joined members than this, presence is not sent to the members. */
export const maxMembers = 1_000;

/** Minimum milliseconds for which changes are collected before they are announced together. */
const minPause = 500;

/** Maximum milliseconds for which changes are collected. */
const maxPause = 60_000;

/**
 * Maximum number of members notified per second on average: the pause after an announcement grows with the number of
 * notified members.
 */
const maxNotifiedPerSecond = 2_000;

/**
 * Collects changes of presence and announces them together: the more members receive them, the longer the pause until
 * the next announcement.
 */
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

  /**
   * Adds a change of a user's presence.
   * @param roomId a room that the user has joined: only its members are notified; absent: the members of all rooms of
   * the user
   */
  add(userId: string, status: PresenceStatus, roomId?: string): void {
    if (this.#closed) return;
    const before = this.#pending.get(userId);
    const everywhere = roomId === undefined || (before !== undefined && before.rooms === undefined);
    const rooms = everywhere ? undefined : new Set([...(before?.rooms ?? []), roomId]);
    this.#pending.set(userId, { status, rooms });
    this.#schedule();
  }

  /** Resolves when the running announcement is done; for tests. */
  async idle(): Promise<void> {
    await this.#announcing;
  }

  /** Stops announcing; pending changes are dropped. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    await this.#announcing;
  }

  #schedule(): void {
    if (this.#timer) return;
    const { clock, log } = this.#deps;
    const pause = Math.max(minPause, this.#notBefore - clock.monotonic());
    this.#timer = clock.setTimer(pause, () => {
      this.#announcing = this.#announce()
        .catch((error: unknown) => log.error({ err: error }, 'Presence could not be announced'))
        .finally(() => {
          this.#timer = undefined;
          if (this.#pending.size > 0 && !this.#closed) this.#schedule();
        });
    });
  }

  async #announce(): Promise<void> {
    const pending = this.#pending;
    this.#pending = new Map();
    try {
      await this.#announceAll(pending);
    } catch (error) {
      this.#notBefore = this.#deps.clock.monotonic() + retryPause;
      for (const [userId, change] of pending) this.#restore(userId, change);
      throw error;
    }
  }

  /** Makes a change pending again; a newer status of the user stays. */
  #restore(userId: string, { status, rooms }: Pending): void {
    const newer = this.#pending.get(userId);
    const isForAllRooms = rooms === undefined || (newer !== undefined && newer.rooms === undefined);
    const merged = isForAllRooms ? undefined : new Set([...rooms, ...(newer?.rooms ?? [])]);
    this.#pending.set(userId, { status: newer?.status ?? status, rooms: merged });
  }

  async #announceAll(pending: ReadonlyMap<string, Pending>): Promise<void> {
    const rooms = new Map<string, string[]>();
    const changes = new Map<string, PresenceStatus>();
    let notified = 0;
    for (const [userId, { status, rooms: only }] of pending) {
      changes.set(userId, status);
      for (const roomId of only ?? (await this.#roomsOf(userId))) {
        const members = (await this.#deps.engine.heads.get(roomId))?.memberCount('join') ?? 0;
        if (members > maxMembers) continue;
        notified += members;
        const users = rooms.get(roomId);
        if (users) users.push(userId);
        else rooms.set(roomId, [userId]);
      }
    }
    const { streams, clock } = this.#deps;
    this.#notBefore = clock.monotonic() + Math.min(maxPause, (notified * 1_000) / maxNotifiedPerSecond);
    const routed = await this.#deps.routing?.receiversOf(changes);
    if (!this.#closed) streams.announce(this.stream, { changes, rooms, ...(routed && { routed }) });
  }

  #roomsOf(userId: string): Promise<string[]> {
    return this.#deps.engine.userRooms.withMembership(userId, 'join');
  }
}
