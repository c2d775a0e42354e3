import type { Clock } from '../../kernel/clock.ts';
import type { StreamReader } from '../../kernel/streams/index.ts';
import type { RoomReader } from '../../room-engine/index.ts';

type Resume = () => void;

/** Requests that wait for the next event in any of several rooms; the user need not be a member of these rooms. */
export class RoomWaiters {
  readonly #clock: Clock;
  /** Waiting requests by room id. */
  readonly #waiting = new Map<string, Set<Resume>>();
  /** Requests whose rooms have a new event; they resume when the current position of the streams advances. */
  readonly #changed = new Set<Resume>();

  constructor(engine: RoomReader, streams: StreamReader, clock: Clock) {
    this.#clock = clock;
    engine.stream.subscribe(({ roomId }) => {
      for (const resume of this.#waiting.get(roomId) ?? []) this.#changed.add(resume);
    });
    streams.onAdvance(() => {
      for (const resume of this.#changed) resume();
      this.#changed.clear();
    });
  }

  /** Resolves at the next event in one of the rooms, after `timeout` milliseconds, or when `signal` aborts. */
  wait(roomIds: readonly string[], timeout: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal.aborted) return resolve();
      const resume = () => {
        timer.cancel();
        signal.removeEventListener('abort', resume);
        for (const roomId of roomIds) this.#remove(roomId, resume);
        resolve();
      };
      const timer = this.#clock.setTimer(timeout, resume);
      signal.addEventListener('abort', resume, { once: true });
      for (const roomId of roomIds) this.#add(roomId, resume);
    });
  }

  #add(roomId: string, resume: Resume): void {
    const waiting = this.#waiting.get(roomId);
    if (waiting) waiting.add(resume);
    else this.#waiting.set(roomId, new Set([resume]));
  }

  #remove(roomId: string, resume: Resume): void {
    const waiting = this.#waiting.get(roomId);
    waiting?.delete(resume);
    if (waiting?.size === 0) this.#waiting.delete(roomId);
  }
}
