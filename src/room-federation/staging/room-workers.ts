import type { Clock, Timer } from '../../kernel/clock.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import type { StagedEvent, Staging } from './staging.ts';

/** Milliseconds before an event is tried again: the first time, and at most. */
const [firstDelay, longestDelay] = [10_000, 60 * 60_000];

/** By what the delay grows, and after how many attempts an event is given up: after some six hours. */
const [growth, maxAttempts] = [4, 10];

/** Events of a room that get their places together: they share flushes. */
const maxTogether = 50;

/** Events behind one that others are asked about which are looked at meanwhile and can not have their places yet. */
const maxPassedOver = 100;

/** What to do with an event that waited. */
export type Outcome =
  | { readonly kind: 'done' }
  /** It has no place now, and may have one later. */
  | { readonly kind: 'failed'; readonly error: unknown }
  /** It was not tried, and will not be until then (milliseconds since the epoch), unless the program restarts. */
  | { readonly kind: 'put off'; readonly until: number };

export interface RoomWorkersDeps {
  readonly staging: Staging;
  readonly clock: Clock;
  readonly log: Logger;
  /**
   * Gives an event its place if everything is here that it refers to, or is about to be.
   * @param isUnderWay whether an event that came before is getting its place now
   * @returns `undefined` when something is missing
   */
  readonly begin: (
    staged: StagedEvent,
    isUnderWay: (eventId: string) => boolean,
  ) => Promise<{ readonly placed: Promise<unknown> } | undefined>;
  /** Gives an event its place, whatever that takes. */
  readonly handle: (staged: StagedEvent) => Promise<Outcome>;
  /** Told of every event that has to wait for another attempt. */
  readonly onWaiting: (staged: StagedEvent) => Promise<void>;
  /** Told of every event that is given up. */
  readonly onDropped: () => void;
}

/**
 * One worker for each room in which events wait: it takes them in the order of arrival. While it asks about one, those
 * behind it that lack nothing get their places.
 */
export class RoomWorkers {
  readonly #deps: RoomWorkersDeps;
  readonly #running = new Map<string, Promise<void>>();
  readonly #timers = new Map<string, Timer>();
  /** Tell workers that there is more to do. */
  readonly #bells = new Map<string, () => void>();
  #closed = false;

  constructor(deps: RoomWorkersDeps) {
    this.#deps = deps;
  }

  /** There may be something to do in a room. */
  wake(roomId: string): void {
    if (this.#running.has(roomId)) this.#bells.get(roomId)?.();
    if (this.#closed || this.#running.has(roomId)) return;
    this.#timers.get(roomId)?.cancel();
    this.#timers.delete(roomId);
    const running = this.#run(roomId).finally(() => {
      this.#running.delete(roomId);
      this.#bells.delete(roomId);
      this.#rest(roomId);
    });
    this.#running.set(roomId, running);
  }

  /** Resolves when no worker has anything to do now. */
  async settled(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running.values());
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const timer of this.#timers.values()) timer.cancel();
    this.#timers.clear();
    await this.settled();
  }

  async #run(roomId: string): Promise<void> {
    const { staging, clock } = this.#deps;
    const underWay = new Map<string, Promise<void>>();
    /** Events that are not begun with others again, for they have failed so. */
    const alone = new Set<string>();
    /** Events that wait for the one that others are asked about. */
    const passedOver = new Set<string>();
    let asking: Promise<void> | undefined;
    for (;;) {
      const isFull = underWay.size >= maxTogether || passedOver.size >= maxPassedOver;
      const rung = new Promise<void>((ring) => this.#bells.set(roomId, ring));
      const staged = this.#closed || isFull ? undefined : staging.nextDue(roomId, clock.now(), passedOver);
      if (!staged) {
        if (underWay.size === 0 && !asking) return;
        await Promise.race([...underWay.values(), ...(asking ? [asking] : []), ...(isFull ? [] : [rung])]);
      } else if (alone.has(staged.eventId) || !(await this.#begin(staged, underWay, alone))) {
        if (asking) passedOver.add(staged.eventId);
        else {
          asking = this.#ask(staged, [...underWay.values()]).finally(() => {
            asking = undefined;
            passedOver.clear();
          });
        }
      }
    }
  }

  /** Lets an event get its place, whatever that takes, when those have theirs that came before it. */
  async #ask(staged: StagedEvent, before: readonly Promise<void>[]): Promise<void> {
    staged.isUnderWay = true;
    try {
      await Promise.all(before);
      if (this.#deps.staging.has(staged.eventId)) await this.#handle(staged);
    } finally {
      staged.isUnderWay = false;
    }
  }

  /** Lets an event get its place beside others. @returns whether that is possible */
  async #begin(
    staged: StagedEvent,
    underWay: Map<string, Promise<void>>,
    alone: Set<string>,
  ): Promise<boolean> {
    const { begin, staging, log } = this.#deps;
    const { eventId } = staged;
    try {
      const begun = await begin(staged, (id) => underWay.has(id));
      if (!begun) return false;
      staged.isUnderWay = true;
      const end = (isPlaced: boolean) => {
        staged.isUnderWay = false;
        underWay.delete(eventId);
        if (isPlaced) staging.remove(eventId);
        else alone.add(eventId);
      };
      const failed = (error: unknown) => {
        log.debug({ err: error, eventId }, 'An event gets its place alone');
        end(false);
      };
      underWay.set(
        eventId,
        begun.placed.then(() => end(true), failed),
      );
      return true;
    } catch (error) {
      log.debug({ err: error, eventId }, 'An event gets its place alone');
      return false;
    }
  }

  async #handle(staged: StagedEvent): Promise<void> {
    const { handle, staging, log } = this.#deps;
    let outcome: Outcome;
    try {
      outcome = await handle(staged);
    } catch (error) {
      outcome = { kind: 'failed', error };
    }
    if (this.#closed && outcome.kind !== 'done') return;
    if (outcome.kind === 'done') staging.remove(staged.eventId);
    else if (outcome.kind === 'failed') await this.#fail(staged, outcome.error);
    else staged.retryTs = outcome.until;
    if (staging.has(staged.eventId)) await this.#deps.onWaiting(staged);
    log.trace({ eventId: staged.eventId, outcome: outcome.kind }, 'An event of another server was handled');
  }

  async #fail(staged: StagedEvent, error: unknown): Promise<void> {
    const { staging, clock, log, onDropped } = this.#deps;
    const attempts = staged.attempts + 1;
    const { eventId, roomId, origin } = staged;
    if (attempts >= maxAttempts) {
      log.warn({ err: error, eventId, roomId, origin, attempts }, 'An event of another server is given up');
      staging.remove(eventId);
      onDropped();
      return;
    }
    const delay = Math.min(firstDelay * growth ** (attempts - 1), longestDelay);
    log.info(
      { err: error, eventId, roomId, origin, attempts, delay },
      'An event waits for what it refers to',
    );
    await this.#postpone(staged, clock.now() + delay, attempts);
  }

  async #postpone(staged: StagedEvent, until: number, attempts: number): Promise<void> {
    try {
      await this.#deps.staging.postpone(staged, until, attempts);
    } catch (error) {
      // It waits in memory all the same; after a restart it is tried at once.
      this.#deps.log.error({ err: error, eventId: staged.eventId }, 'A pause could not be written down');
    }
  }

  /** Wakes the worker when the next event may be tried. */
  #rest(roomId: string): void {
    const { staging, clock } = this.#deps;
    const next = this.#closed ? undefined : staging.nextRetry(roomId);
    if (next === undefined) return;
    const delay = next - clock.now();
    if (delay <= 0) this.wake(roomId);
    else {
      this.#timers.get(roomId)?.cancel();
      const timer = clock.setTimer(delay, () => this.wake(roomId));
      this.#timers.set(roomId, timer);
    }
  }
}
