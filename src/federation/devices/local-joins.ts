import type { Clock } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import { FactBuffer, Follower, type StreamReader } from '../../kernel/streams/index.ts';
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

/**
 * A join of a local user to a room, or the end of the partial state of a room. The state of a room is partial after a
 * join until all memberships have been fetched. Its end stands for the joins of all local users of the room.
 */
interface LocalJoin {
  readonly roomId: string;
  /** `undefined` for the end of the partial state. */
  readonly userId: string | undefined;
}

/**
 * Calls `onJoin` for each join of a local user to a room, and for the end of the partial state of each room. After a
 * restart, it is also called for what happened just before this server stopped.
 */
export class LocalJoins {
  readonly #deps: LocalJoinsDeps;
  readonly #onJoin: (join: LocalJoin) => Promise<void>;
  readonly #follower: Follower;
  readonly #buffer: FactBuffer<LocalJoin & { readonly position: number }>;

  /** @param onJoin may be called twice for the same join */
  constructor(deps: LocalJoinsDeps, onJoin: (join: LocalJoin) => Promise<void>) {
    this.#deps = deps;
    this.#onJoin = onJoin;
    this.#buffer = new FactBuffer(deps.streams);
    deps.engine.stream.subscribe(({ roomId, completesState, membershipChanges }, position) => {
      if (completesState) this.#buffer.add({ roomId, userId: undefined, position });
      for (const { userId, from, to } of membershipChanges) {
        if (to === 'join' && from !== 'join' && this.#isLocal(userId))
          this.#buffer.add({ roomId, userId, position });
      }
    });
    this.#follower = new Follower(deps, {
      name: 'federation/introductions',
      follow: (after, upTo) => this.#follow(after, upTo),
    });
  }

  start(): Promise<void> {
    return this.#follower.start();
  }

  /** Pending joins are processed after the next start. */
  stop(): Promise<void> {
    return this.#follower.stop();
  }

  /** Resolves when all joins so far have been processed. */
  settled(): Promise<void> {
    return this.#follower.caughtUp();
  }

  async #follow(after: number, upTo: number): Promise<void> {
    const joins = this.#buffer.take(after, upTo) ?? (await this.#storedJoins(after, upTo));
    for (const { roomId, userId } of joins) await this.#onJoin({ roomId, userId });
  }

  /** Reads the joins in `(after, upTo]` of the stream from the database. */
  async #storedJoins(after: number, upTo: number): Promise<LocalJoin[]> {
    const { engine } = this.#deps;
    const completed = await engine.roomsCompletedSince(after);
    const joins: LocalJoin[] = completed.map(({ roomId }) => ({ roomId, userId: undefined }));
    for (const roomId of await engine.events.roomsChangedBetween(after, upTo)) {
      const head = await engine.heads.get(roomId);
      const local = [...(head?.members ?? [])].filter(
        ([userId, membership]) => membership === 'join' && this.#isLocal(userId),
      );
      for (const [userId] of local) {
        const room = (await engine.userRooms.of(userId)).get(roomId);
        if (room && room.membership === 'join' && room.stream > after) joins.push({ roomId, userId });
      }
    }
    return joins;
  }

  #isLocal(userId: string): boolean {
    return serverOfUser(userId) === this.#deps.serverName;
  }
}
