import type { Clock, Timer } from '../../kernel/clock.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import type { IncomingMetrics } from '../metrics.ts';
import type { Outcome, StagedEventProcessor } from './staged-event-processor.ts';
import type { StagedEvent, Staging } from './staging.ts';

/** Milliseconds before an event is retried for the first time. */
const minDelay = 10_000;

/** Maximum milliseconds before an event is retried. */
const maxDelay = 60 * 60_000;

/** The factor by which the delay grows after each attempt. */
const growth = 4;

/** After this number of failed attempts, with about five hours of delays between them, an event is dropped. */
const maxAttempts = 10;

/** Maximum number of events of a room that are placed at the same time, so that they share writes to the database. */
const maxTogether = 50;

/**
 * Maximum number of later events that cannot be placed yet and are skipped, while an earlier event waits for remote
 * servers.
 */
const maxSkipped = 100;

export interface RoomWorkersDeps {
  readonly staging: Staging;
  readonly events: StagedEventProcessor;
  readonly metrics: IncomingMetrics;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Runs one worker for each room with staged events. The worker processes the events in order of arrival: it requests
 * missing events from remote servers, and places each event in the room (`Placement.place`). While it waits for remote
 * servers because of one event, it places later events that are complete. An event is complete when it can be placed
 * without requests, because no event that it refers to is missing.
 */
export class RoomWorkers {
  readonly #deps: RoomWorkersDeps;
  readonly #running = new Map<string, Promise<void>>();
  readonly #timers = new Map<string, Timer>();
  #closed = false;

  constructor(deps: RoomWorkersDeps) {
    this.#deps = deps;
  }

  /** Starts the worker of a room, because events may be due. A running worker watches the staged events itself. */
  wake(roomId: string): void {
    if (this.#closed || this.#running.has(roomId)) return;
    this.#timers.get(roomId)?.cancel();
    this.#timers.delete(roomId);
    const running = this.#run(roomId).finally(() => {
      this.#running.delete(roomId);
      this.#deps.staging.endWatch(roomId);
      this.#scheduleNext(roomId);
    });
    this.#running.set(roomId, running);
  }

  /** Resolves when no worker is running. */
  async settled(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running.values());
  }

  /** Stops the scheduled retries, and waits for the running workers. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const timer of this.#timers.values()) timer.cancel();
    this.#timers.clear();
    await this.settled();
  }

  async #run(roomId: string): Promise<void> {
    const { staging, clock } = this.#deps;
    /** Events that are being placed together, by event id. */
    const underWay = new Map<string, Promise<void>>();
    /** Events that failed when they were placed together with other events, and so are placed alone. */
    const failedTogether = new Set<string>();
    /**
     * Events that have to be processed alone, because they are not complete or failed together with others. They wait
     * until `fetching` has ended.
     */
    const skipped = new Set<string>();
    /** The processing of one event alone, which may wait for remote servers. */
    let fetching: Promise<void> | undefined;
    for (;;) {
      const isFull = underWay.size >= maxTogether || skipped.size >= maxSkipped;
      const staged = this.#closed || isFull ? undefined : staging.nextDue(roomId, clock.now(), skipped);
      if (!staged) {
        if (underWay.size === 0 && !fetching) return;
        const changes = isFull ? [] : [staging.nextChange(roomId)];
        await Promise.race([...underWay.values(), ...(fetching ? [fetching] : []), ...changes]);
      } else if (
        failedTogether.has(staged.eventId) ||
        !(await this.#placeWithOthers(staged, underWay, failedTogether))
      ) {
        if (fetching) skipped.add(staged.eventId);
        else {
          fetching = this.#processAfter(staged, [...underWay.values()]).finally(() => {
            fetching = undefined;
            skipped.clear();
          });
        }
      }
    }
  }

  /**
   * Waits until the events before an event are placed, and then processes it, with requests to remote servers
   * where needed.
   */
  async #processAfter(staged: StagedEvent, before: readonly Promise<void>[]): Promise<void> {
    staged.isUnderWay = true;
    try {
      await Promise.all(before);
      if (this.#deps.staging.has(staged.eventId)) await this.#process(staged);
    } finally {
      staged.isUnderWay = false;
    }
  }

  /** Begins to place an event together with others, if it is complete. @returns whether it has begun */
  async #placeWithOthers(
    staged: StagedEvent,
    underWay: Map<string, Promise<void>>,
    failedTogether: Set<string>,
  ): Promise<boolean> {
    const { events, staging, log } = this.#deps;
    const { eventId } = staged;
    try {
      const placing = await events.placeIfComplete(staged, (id) => underWay.has(id));
      if (!placing) return false;
      staged.isUnderWay = true;
      const end = (isPlaced: boolean) => {
        staged.isUnderWay = false;
        underWay.delete(eventId);
        if (isPlaced) staging.remove(eventId);
        else failedTogether.add(eventId);
      };
      const failed = (error: unknown) => {
        log.debug(
          { err: error, eventId },
          'Placing an event together with others failed; it is placed alone',
        );
        end(false);
      };
      underWay.set(
        eventId,
        placing.placed.then(() => end(true), failed),
      );
      return true;
    } catch (error) {
      log.debug({ err: error, eventId }, 'Placing an event together with others failed; it is placed alone');
      return false;
    }
  }

  async #process(staged: StagedEvent): Promise<void> {
    const { events, staging, log } = this.#deps;
    let outcome: Outcome;
    try {
      outcome = await events.process(staged);
    } catch (error) {
      outcome = { kind: 'failed', error };
    }
    if (this.#closed && outcome.kind !== 'done') return;
    if (outcome.kind === 'done') staging.remove(staged.eventId);
    else if (outcome.kind === 'failed') await this.#fail(staged, outcome.error);
    else staged.retryTs = outcome.until;
    if (staging.has(staged.eventId)) await events.recordMissingEvents(staged);
    log.trace({ eventId: staged.eventId, outcome: outcome.kind }, 'Processed a staged event');
  }

  async #fail(staged: StagedEvent, error: unknown): Promise<void> {
    const { staging, clock, log, metrics } = this.#deps;
    const attempts = staged.attempts + 1;
    const { eventId, roomId, origin } = staged;
    if (attempts >= maxAttempts) {
      log.warn(
        { err: error, eventId, roomId, origin, attempts },
        'A staged event was dropped after its last attempt failed',
      );
      staging.remove(eventId);
      metrics.dropped();
      return;
    }
    const delay = Math.min(minDelay * growth ** (attempts - 1), maxDelay);
    log.info(
      { err: error, eventId, roomId, origin, attempts, delay },
      'A staged event could not be processed and will be retried',
    );
    await this.#postpone(staged, clock.now() + delay, attempts);
  }

  async #postpone(staged: StagedEvent, until: number, attempts: number): Promise<void> {
    try {
      await this.#deps.staging.postpone(staged, until, attempts);
    } catch (error) {
      // The delay still applies in memory; after a restart the event is retried at once.
      this.#deps.log.error({ err: error, eventId: staged.eventId }, 'A retry time could not be stored');
    }
  }

  /** Wakes the worker when the next event is due. */
  #scheduleNext(roomId: string): void {
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
