import type { RoomReader } from '../../room-engine/index.ts';
import type { StateCompletion } from './complete-members.ts';

type FollowedRooms = Pick<RoomReader, 'stream' | 'removals'> & {
  readonly heads: Pick<RoomReader['heads'], 'get'>;
};

/** Waits for the states of rooms that another process completes. */
export class FollowedCompletion implements StateCompletion {
  readonly #engine: FollowedRooms;
  readonly #waitingByRoom = new Map<string, Set<() => void>>();

  constructor(engine: FollowedRooms) {
    this.#engine = engine;
    engine.stream.subscribe(({ roomId, end }) => {
      // `end` is absent when the state of the room has been completed, and after some other changes: the loop in
      // `whenMembersKnown` checks which.
      if (!end) this.#resume(roomId);
    });
    engine.removals.subscribe((removal) => {
      if (removal.kind === 'purged') this.#resume(removal.roomId);
    });
  }

  /**
   * Resolves when the state of the room lacks at most events whose keys could not be fetched, the room is deleted, or
   * `signal` aborts.
   */
  async whenMembersKnown(roomId: string, { signal }: { readonly signal?: AbortSignal } = {}): Promise<void> {
    while (!signal?.aborted) {
      // The wait begins before the head is read, so that a completion in the meantime is not missed.
      const { promise: changed, resolve: resume } = Promise.withResolvers<void>();
      const waiting = this.#waitingByRoom.get(roomId) ?? new Set();
      this.#waitingByRoom.set(roomId, waiting.add(resume));
      signal?.addEventListener('abort', resume as () => void, { once: true });
      try {
        if (!(await this.#engine.heads.get(roomId))?.lacksMembers) return;
        await changed;
      } finally {
        signal?.removeEventListener('abort', resume as () => void);
        waiting.delete(resume);
        if (waiting.size === 0 && this.#waitingByRoom.get(roomId) === waiting)
          this.#waitingByRoom.delete(roomId);
      }
    }
  }

  #resume(roomId: string): void {
    const waiting = this.#waitingByRoom.get(roomId);
    this.#waitingByRoom.delete(roomId);
    for (const resume of waiting ?? []) resume();
  }
}
