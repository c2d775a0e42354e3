import type { KeyedMutex } from '../../kernel/keyed-mutex.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import type { HeadReader, PolicyServers, RoomHead, VerifiedEvent } from '../../room-engine/index.ts';
import type { EventProcessor } from '../event-processor.ts';
import { defaultMaxMissing, type StateOptions } from '../fetching/state-fetcher.ts';
import type { QueryBackoff } from '../querying/query-backoff.ts';
import type { StagedEvent, Staging } from './staging.ts';

/**
 * Number of attempts at the beginning that require the full state, where a state has to be fetched. They take about a
 * minute. An event that is placed with an incomplete state keeps that state for ever, and events of users whom the
 * state lacks are rejected. So the first attempts require the full state, because a key that cannot be fetched now may
 * be available soon.
 */
const fullStateAttempts = 2;

/**
 * Number of attempts at the beginning that accept a state only if it lacks at most the share `defaultMaxMissing`. They
 * take about an hour. Later attempts accept an incomplete state of any size, because keys of servers that are gone will
 * never be available.
 */
const nearlyFullStateAttempts = 6;

/** Maximum number of missing events that an event waits for; an event that lacks more is retried after a delay only. */
const maxAwaited = 5;

/** The outcome of one attempt to process a staged event. */
export type Outcome =
  | { readonly kind: 'done' }
  /** The event could not be placed, and a later attempt may succeed. */
  | { readonly kind: 'failed'; readonly error: unknown }
  /**
   * The event was not tried, and will not be tried before `until` (milliseconds since the epoch), unless the server
   * restarts.
   */
  | { readonly kind: 'deferred'; readonly until: number };

export interface StagedEventProcessorDeps {
  readonly log: Logger;
  readonly serverName: string;
  readonly heads: HeadReader;
  readonly policies: PolicyServers;
  readonly staging: Staging;
  readonly backoff: QueryBackoff;
  readonly processor: EventProcessor;
  /** Events of one room that need requests to remote servers are processed one at a time. */
  readonly mutex: KeyedMutex;
}

/** Processes single staged events for the workers of rooms. */
export class StagedEventProcessor {
  readonly #deps: StagedEventProcessorDeps;

  constructor(deps: StagedEventProcessorDeps) {
    this.#deps = deps;
  }

  /**
   * Begins to place an event if it is complete: its previous events are placed or being placed, its auth events are
   * stored or being placed, and it has the signature of the policy server where the room requires one.
   * @param isUnderWay whether an event is being placed at the moment
   * @returns `undefined` when the event is not complete
   */
  async placeIfComplete(
    staged: StagedEvent,
    isUnderWay: (eventId: string) => boolean,
  ): Promise<{ readonly placed: Promise<unknown> } | undefined> {
    const { processor } = this.#deps;
    const [head, event] = await this.#read(staged);
    if (!head || !event || !(await this.#needsNoRequest(head, event, isUnderWay))) return undefined;
    return { placed: processor.place(staged.roomId, event) };
  }

  /**
   * Processes an event, after requesting the missing events that it refers to. Defers an event that needs requests
   * while its origin is in backoff for the room.
   */
  async process(staged: StagedEvent): Promise<Outcome> {
    const { log, mutex, backoff, processor } = this.#deps;
    const { roomId, origin, eventId } = staged;
    const [head, event] = await this.#read(staged);
    if (!head || !event) {
      log.info(
        { eventId, roomId },
        'A staged event was dropped: this server is not in the room, or the event is not staged any more',
      );
      return { kind: 'done' };
    }
    return mutex.run(roomId, async () => {
      const until = backoff.eventsWaitUntil(roomId, origin);
      if (until !== undefined && !(await this.#needsNoRequest(head, event))) {
        return { kind: 'deferred', until };
      }
      try {
        await processor.process(head, origin, event, stateOptionsAt(staged.attempts));
        return { kind: 'done' };
      } catch (error) {
        backoff.recordFailure(roomId, origin);
        return { kind: 'failed', error };
      }
    });
  }

  /** Records the missing events that a staged event waits for, so that it is due as soon as they are placed. */
  async recordMissingEvents(staged: StagedEvent): Promise<void> {
    const { heads, staging, processor } = this.#deps;
    const head = await heads.get(staged.roomId);
    const event = head && (await staging.read(staged, head.version));
    if (!event) return;
    // Set before the look-up, so that events that are placed during the look-up are removed from this set.
    const awaited = new Set([...event.event.prevEventIds, ...event.event.authEventIds]);
    staged.missing = awaited;
    const missing = await processor.missingReferences(event);
    if (staged.missing !== awaited) return;
    const stillMissing = new Set(missing.filter((id) => awaited.has(id)));
    staged.missing = stillMissing.size > 0 && stillMissing.size <= maxAwaited ? stillMissing : undefined;
    if (stillMissing.size === 0 && missing.length > 0) staged.retryTs = 0;
  }

  /**
   * Reads the room and the event; the event is absent when this server is not in the room, or it is not staged any
   * more.
   */
  async #read(staged: StagedEvent): Promise<[RoomHead | undefined, VerifiedEvent | undefined]> {
    const { heads, serverName, staging } = this.#deps;
    const head = await heads.get(staged.roomId);
    return [head, head?.servers.has(serverName) ? await staging.read(staged, head.version) : undefined];
  }

  /** Whether an event can be placed without a request to any server, including the room's policy server. */
  async #needsNoRequest(
    head: RoomHead,
    event: VerifiedEvent,
    isUnderWay?: (eventId: string) => boolean,
  ): Promise<boolean> {
    const { policies, processor } = this.#deps;
    if (!policies.isLoaded(head)) await policies.load(head);
    const isSigned = policies.isLoaded(head) && policies.hasRequiredSignature(head, event.event);
    return isSigned && processor.isComplete(event, isUnderWay);
  }
}

/** Returns how states are fetched after this number of failed attempts. */
function stateOptionsAt(attempts: number): StateOptions {
  // Only the last attempts may request the state at the event itself, which other servers may not know.
  const fallsBackToEvent = attempts >= nearlyFullStateAttempts;
  if (attempts < fullStateAttempts) return { maxMissing: 0, fallsBackToEvent };
  return { maxMissing: attempts < nearlyFullStateAttempts ? defaultMaxMissing : 1, fallsBackToEvent };
}
