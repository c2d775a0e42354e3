import type { Clock } from '../../kernel/clock.ts';
import type { KeyedMutex } from '../../kernel/keyed-mutex.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import type { HeadReader, PolicyServers, RoomHead, VerifiedEvent } from '../../room-engine/index.ts';
import type { AskBackoff } from '../asking/ask-backoff.ts';
import type { EventProcessor } from '../event-processor.ts';
import { defaultMaxMissing, type StateOptions } from '../fetching/state-fetcher.ts';
import type { IncomingMetrics } from '../metrics.ts';
import type { Outcome } from './room-workers.ts';
import type { StagedEvent, Staging } from './staging.ts';

/**
 * Attempts, within a minute, at which a state that has to be fetched must be whole, and within some hour, at which most
 * of it must be there. If the keys of a server can not be had for a moment, its users would else be missing in that
 * state for ever, and what they said be rejected; those of servers that are gone will never be had, however many.
 */
const [wholeAttempts, usualAttempts] = [2, 6];

/** An event that lacks more than so many others is not waited with for them, but tried again after a while. */
const maxLacking = 5;

export interface StagedEventProcessorDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly serverName: string;
  readonly heads: HeadReader;
  readonly policies: PolicyServers;
  readonly staging: Staging;
  readonly backoff: AskBackoff;
  readonly processor: Pick<EventProcessor, 'place' | 'isComplete' | 'missingReferences'>;
  readonly mutex: KeyedMutex;
  readonly metrics: Pick<IncomingMetrics, 'took'>;
  /** Gives an event its place, with everything that it refers to. */
  readonly process: (
    head: RoomHead,
    origin: string,
    event: VerifiedEvent,
    options: StateOptions,
  ) => Promise<unknown>;
  readonly wake: (roomId: string) => void;
}

/** What the worker of a room does with an event that waits on disk. */
export class StagedEventProcessor {
  readonly #deps: StagedEventProcessorDeps;

  constructor(deps: StagedEventProcessorDeps) {
    this.#deps = deps;
  }

  /** As `RoomWorkersParts.begin`. */
  async begin(staged: StagedEvent, isUnderWay: (eventId: string) => boolean) {
    const { heads, serverName, clock, staging, processor, metrics } = this.#deps;
    const head = await heads.get(staged.roomId);
    const event = head?.servers.has(serverName) ? await staging.read(staged, head.version) : undefined;
    if (!head || !event || !(await this.#asksNobody(head, event, isUnderWay))) return undefined;
    const begun = clock.monotonic();
    const placed = processor.place(staged.roomId, event);
    return { placed: placed.finally(() => metrics.took(clock.monotonic() - begun)) };
  }

  /** As `RoomWorkersParts.handle`. */
  async handle(staged: StagedEvent): Promise<Outcome> {
    const { heads, serverName, log, staging, mutex: turns, backoff, process } = this.#deps;
    const { roomId, origin, eventId } = staged;
    const head = await heads.get(roomId);
    const event = head?.servers.has(serverName) ? await staging.read(staged, head.version) : undefined;
    if (!head || !event) {
      log.info({ eventId, roomId }, 'An event is dropped: this server has left the room');
      return { kind: 'done' };
    }
    return turns.run(roomId, async () => {
      const until = backoff.eventsWaitUntil(roomId, origin);
      if (until !== undefined && !(await this.#asksNobody(head, event))) {
        return { kind: 'put off', until };
      }
      try {
        const mayLack = lackAfter(staged.attempts);
        await process(head, origin, event, { maxMissing: mayLack });
        return { kind: 'done' };
      } catch (error) {
        backoff.recordFailure(roomId, origin);
        return { kind: 'failed', error };
      }
    });
  }

  /** Takes note of what an event waits for, so that it is tried as soon as that is here. */
  async noteLacks(staged: StagedEvent): Promise<void> {
    const { heads, staging, processor, wake } = this.#deps;
    const head = await heads.get(staged.roomId);
    const event = head && (await staging.read(staged, head.version));
    if (!event) return;
    // From here on it is seen when one of them arrives.
    const awaited = new Set([...event.event.prevEventIds, ...event.event.authEventIds]);
    staged.missing = awaited;
    const lacking = await processor.missingReferences(event);
    if (staged.missing !== awaited) return;
    const left = new Set(lacking.filter((id) => awaited.has(id)));
    staged.missing = left.size > 0 && left.size <= maxLacking ? left : undefined;
    if (left.size > 0 || lacking.length === 0) return;
    staged.retryTs = 0;
    wake(staged.roomId);
  }

  /** Whether an event can have its place without a question to any server. */
  async #asksNobody(
    head: RoomHead,
    event: VerifiedEvent,
    isUnderWay?: (eventId: string) => boolean,
  ): Promise<boolean> {
    const { policies, processor } = this.#deps;
    if (!policies.isLoaded(head)) await policies.load(head);
    const isVouched = policies.isLoaded(head) && policies.hasRequiredSignature(head, event.event);
    return isVouched && processor.isComplete(event, isUnderWay);
  }
}

/** Which part of a fetched state may be missing when an event is tried again (0 to 1). */
function lackAfter(attempts: number): number {
  if (attempts < wholeAttempts) return 0;
  return attempts < usualAttempts ? defaultMaxMissing : 1;
}
