import type { Clock } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import { Follower, type StreamReader } from '../../kernel/streams/index.ts';
import { serverOfUser } from '../../protocol/index.ts';
import type { RoomReader } from '../../room-engine/index.ts';

export interface LocalJoinsDeps {
  readonly database: Database;
  readonly streams: StreamReader;
  readonly clock: Clock;
  readonly log: Logger;
  readonly engine: RoomReader;
  readonly serverName: string;
}

/** A local user has come into a room. */
interface LocalJoin {
  readonly roomId: string;
  readonly userId: string;
}

/**
 * Sees to it that servers are told of the local users who come into their rooms, also of those who came just before
 * this server stopped: it may have been in vain that they were told of something earlier.
 */
export class LocalJoins {
  readonly #deps: LocalJoinsDeps;
  readonly #onJoin: (arrival: LocalJoin) => Promise<void>;
  readonly #follower: Follower;
  /** Arrivals after this position have been noted; earlier ones must be looked up. */
  readonly #bufferedFrom: number;
  #due: LocalJoin[] = [];
  #isLookedUp = false;

  /** @param onJoin may be called twice for the same arrival */
  constructor(deps: LocalJoinsDeps, onJoin: (arrival: LocalJoin) => Promise<void>) {
    this.#deps = deps;
    this.#onJoin = onJoin;
    this.#bufferedFrom = deps.streams.current;
    deps.engine.stream.subscribe(({ roomId, membershipChanges }) => {
      for (const { userId, from, to } of membershipChanges) {
        if (to === 'join' && from !== 'join' && this.#isLocal(userId)) this.#due.push({ roomId, userId });
      }
    });
    this.#follower = new Follower(deps, {
      name: 'federation/introductions',
      follow: (after) => this.#follow(after),
    });
  }

  start(): Promise<void> {
    return this.#follower.start();
  }

  /** What is left is done after the next start. */
  stop(): Promise<void> {
    return this.#follower.stop();
  }

  /** Resolves when everybody who has come until now was introduced. */
  settled(): Promise<void> {
    return this.#follower.caughtUp();
  }

  async #follow(after: number): Promise<void> {
    const isLate = !this.#isLookedUp && after < this.#bufferedFrom;
    const due = [...(isLate ? await this.#joinsSince(after) : []), ...this.#due];
    this.#isLookedUp = true;
    this.#due = [];
    try {
      for (let arrival = due[0]; arrival; arrival = due[0]) {
        await this.#onJoin(arrival);
        due.shift();
      }
    } catch (error) {
      this.#due = [...due, ...this.#due];
      throw error;
    }
  }

  /** Who came while nobody listened. */
  async #joinsSince(after: number): Promise<LocalJoin[]> {
    const { engine } = this.#deps;
    const arrivals: LocalJoin[] = [];
    for (const roomId of await engine.events.roomsChangedBetween(after, this.#bufferedFrom)) {
      const head = await engine.heads.get(roomId);
      const local = [...(head?.members ?? [])].filter(
        ([userId, membership]) => membership === 'join' && this.#isLocal(userId),
      );
      for (const [userId] of local) {
        const room = (await engine.userRooms.of(userId)).get(roomId);
        if (room && room.membership === 'join' && room.stream > after) arrivals.push({ roomId, userId });
      }
    }
    return arrivals;
  }

  #isLocal(userId: string): boolean {
    return serverOfUser(userId) === this.#deps.serverName;
  }
}
