import type { Clock, Timer } from '../../../kernel/clock.ts';
import type { Logger } from '../../../kernel/observability/index.ts';
import type { RoomEngine } from '../../engine.ts';
import type { Incoming } from '../../incoming/incoming.ts';
import { usualLack } from '../../incoming/state-fetcher.ts';

export interface StateCompletionParts {
  readonly engine: Pick<RoomEngine, 'heads' | 'placement'>;
  readonly incoming: Pick<Incoming, 'stateBefore'>;
  readonly serverName: string;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Rooms that are completed at a time. */
const mostAtOnce = 3;

/** Milliseconds before another attempt: at first, and at most. */
const [firstPause, longestPause] = [10_000, 1_800_000];

/**
 * Attempts, within ten minutes, at which the state has to be whole, and within two hours, at which most of it has to be
 * there. A server whose keys can not be had at the moment would else be missing in it for ever. Those of servers that
 * are gone will never be had, and an old room may have many of them: a room that is joined with all of its members
 * lacks them as well.
 */
const [wholeAttempts, usualAttempts] = [6, 12];

interface Completion {
  readonly roomId: string;
  failures: number;
  pause: Timer | undefined;
  /** Resolves when the room is complete. */
  readonly done: Promise<void>;
  readonly resolve: () => void;
}

/**
 * Completes the state of rooms that were joined without their members. Which rooms those are is on disk, so that it
 * goes on where it was when the server starts again; it is tried until it succeeds, or nobody is in the room any more.
 * Source: server-server API, `PUT /v2/send_join`, `omit_members`.
 */
export class StateCompletion {
  readonly #parts: StateCompletionParts;
  readonly #rooms = new Map<string, Completion>();
  readonly #waiting: Completion[] = [];
  readonly #running = new Set<Promise<void>>();
  #isClosed = false;

  constructor(parts: StateCompletionParts) {
    this.#parts = parts;
  }

  /** Takes up the rooms that were not complete when the program ended. */
  async start(): Promise<void> {
    for (const { roomId } of await this.#parts.engine.placement.partialRooms()) this.begin(roomId);
  }

  /** Completes a room that has been joined. */
  begin(roomId: string): void {
    if (this.#isClosed || this.#rooms.has(roomId)) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const completion = { roomId, failures: 0, pause: undefined, done: promise, resolve };
    this.#rooms.set(roomId, completion);
    this.#waiting.push(completion);
    this.#next();
  }

  /** Resolves when the room's state is whole, at once for those that need no completion; also when the server stops. */
  async whole(roomId: string): Promise<void> {
    await this.#rooms.get(roomId)?.done;
  }

  /** Gives up what is under way, to be taken up by the next `start`. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const { pause, resolve } of this.#rooms.values()) {
      pause?.cancel();
      resolve();
    }
    await Promise.all(this.#running);
  }

  #next(): void {
    while (!this.#isClosed && this.#running.size < mostAtOnce) {
      const completion = this.#waiting.shift();
      if (!completion) return;
      const run = this.#run(completion).finally(() => {
        this.#running.delete(run);
        this.#next();
      });
      this.#running.add(run);
    }
  }

  async #run(completion: Completion): Promise<void> {
    const { roomId } = completion;
    const { clock, log } = this.#parts;
    try {
      await this.#complete(roomId, lackAfter(completion.failures));
      this.#rooms.delete(roomId);
      completion.resolve();
    } catch (error) {
      if (this.#isClosed) return;
      const pause = Math.min(firstPause * 2 ** completion.failures++, longestPause);
      log.info({ err: error, roomId, pause }, 'The state of a room could not be completed yet');
      completion.pause = clock.setTimer(pause, () => {
        this.#waiting.push(completion);
        this.#next();
      });
    }
  }

  /** @param mayLack the part of the state that may be missing */
  async #complete(roomId: string, mayLack: number): Promise<void> {
    const { engine, incoming, serverName } = this.#parts;
    const head = await engine.heads.get(roomId);
    if (!head?.partial || !head.servers.has(serverName)) return;
    const { from, servers, joinEventId } = head.partial;
    const state = await incoming.stateBefore(roomId, [from, ...servers], joinEventId, { mayLack });
    await engine.placement.completeState(roomId, state);
  }
}

function lackAfter(failures: number): number {
  if (failures < wholeAttempts) return 0;
  return failures < usualAttempts ? usualLack : 1;
}
