import { unknown } from '../../protocol/index.ts';
import type { RoomReader } from '../../room-engine/index.ts';

/**
 * Waits until the members of rooms are known. They are unknown after a join through another server that did not send
 * them.
 */
export interface StateCompletion {
  /**
   * Resolves when all members of the room are known, except those whose keys could not be fetched, or when `signal`
   * aborts.
   */
  whenMembersKnown(roomId: string, options: { readonly signal: AbortSignal }): Promise<void>;
}

/** A request that ends when its client disconnects or the server stops. */
export interface Signalled {
  readonly signal: AbortSignal;
}

type FollowedRooms = Pick<RoomReader, 'stream'> & {
  readonly heads: Pick<RoomReader['heads'], 'get'>;
};

/** Lets joined users wait until all members of a room are known. */
export class CompleteMembers {
  readonly #engine: FollowedRooms;
  readonly #completion: StateCompletion;
  /** The controllers that end waits when a user leaves a room, by `waitKey`. */
  readonly #waits = new Map<string, Set<AbortController>>();

  constructor(engine: FollowedRooms, completion: StateCompletion) {
    this.#engine = engine;
    this.#completion = completion;
    engine.stream.subscribe(({ roomId, membershipChanges }) => {
      if (this.#waits.size === 0) return;
      for (const { userId, to } of membershipChanges)
        if (to !== 'join')
          for (const leaveController of this.#waits.get(waitKey(userId, roomId)) ?? [])
            leaveController.abort();
    });
  }

  /**
   * Resolves when all members of the room are known, or when the user leaves; at once for a user who is not joined.
   * @param request the client's request: its signal ends the wait, and is read only if the wait is needed
   * @throws MatrixError M_UNKNOWN (503) when the signal aborts first
   */
  async wait(userId: string, roomId: string, request: Signalled | undefined): Promise<void> {
    if (!(await this.#isIncomplete(userId, roomId))) return;
    const leaveController = new AbortController();
    const key = waitKey(userId, roomId);
    const waits = this.#waits.get(key) ?? new Set();
    this.#waits.set(key, waits.add(leaveController));
    try {
      // The wait begins before the head is read again, so that a leave in the meantime is not missed.
      if (!(await this.#isIncomplete(userId, roomId))) return;
      const signal = request?.signal;
      const endSignal =
        signal === undefined ? leaveController.signal : AbortSignal.any([signal, leaveController.signal]);
      await this.#completion.whenMembersKnown(roomId, { signal: endSignal });
    } finally {
      waits.delete(leaveController);
      if (waits.size === 0) this.#waits.delete(key);
    }
    if (request?.signal.aborted)
      throw unknown('The members of this room are not known yet. Try again later', 503);
  }

  /** Whether the members of the room that a user is joined to are still missing. */
  async #isIncomplete(userId: string, roomId: string): Promise<boolean> {
    const head = await this.#engine.heads.get(roomId);
    return head?.lacksMembers === true && head.membership(userId) === 'join';
  }
}

const waitKey = (userId: string, roomId: string) => `${userId} ${roomId}`;
