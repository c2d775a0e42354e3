import type { Clock } from '../../kernel/clock.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import {
  claimedEventId,
  isEventId,
  isJsonObject,
  type JsonValue,
  type ReceivedEvent,
  type RoomEvent,
  type RoomVersion,
} from '../../protocol/index.ts';
import type {
  HeadReader,
  Placement,
  ReceivedEventChecks,
  RoomHead,
  ServerAcls,
  VerifiedEvent,
} from '../../room-engine/index.ts';
import { isStorableText } from '../../room-engine/index.ts';
import { hasState } from '../checking/known-events.ts';
import { isRefusal, type Verifier } from '../checking/verifier.ts';
import type { IncomingMetrics } from '../metrics.ts';
import type { QueryBackoff } from '../querying/query-backoff.ts';
import type { RoomWorkers } from './room-workers.ts';
import type { Staging } from './staging.ts';

/** The outcome for one event of a transaction. */
export interface PduOutcome {
  /** Why the event was refused; absent when the event was accepted. */
  readonly error?: string;
}

/** Handles membership events in rooms that this server is not in. */
export interface OutOfBandMemberships {
  /**
   * Returns the room version for reading a membership event of a user; undefined when the event cannot have an effect.
   */
  roomVersionFor(head: RoomHead, userId: string): Promise<RoomVersion | undefined>;
  /** Applies a membership event. @returns whether it had an effect */
  apply(head: RoomHead, event: VerifiedEvent): Promise<boolean>;
}

type Outcomes = Map<string, PduOutcome>;

const accepted: PduOutcome = {};

const noOutcomes: Outcomes = new Map();

interface Deps {
  readonly serverName: string;
  readonly heads: HeadReader;
  readonly serverAcls: ServerAcls;
  readonly placement: Placement;
  readonly verifier: Verifier;
  readonly staging: Staging;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: IncomingMetrics;
  readonly backoff: QueryBackoff;
  readonly outOfBand: OutOfBandMemberships;
  readonly workers: RoomWorkers;
  readonly receivedEventChecks?: ReceivedEventChecks | undefined;
}

/**
 * Does the first checks on the PDUs of a transaction, stages the PDUs that pass, and wakes the workers of their rooms.
 */
export class PduReceiver {
  readonly #deps: Deps;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /**
   * Receives the PDUs of one transaction. An error in one room does not affect the PDUs of other rooms.
   * @returns outcomes by event id
   * @throws when no event could be stored, so that the server sends the transaction again
   */
  async receive(origin: string, pdus: readonly JsonValue[]): Promise<Record<string, PduOutcome>> {
    const rooms = [...Map.groupBy(pdus, (pdu) => (isJsonObject(pdu) ? pdu.room_id : undefined))];
    const outcomes = await Promise.allSettled(
      rooms.map(async ([roomId, pdusOfRoom]) =>
        typeof roomId === 'string' ? this.#receiveInRoom(origin, roomId, pdusOfRoom) : noOutcomes,
      ),
    );
    const failures = outcomes.filter(({ status }) => status === 'rejected');
    const [failure] = failures;
    if (failure?.status === 'rejected' && failures.length === outcomes.length) throw failure.reason;
    for (const [index, outcome] of outcomes.entries()) {
      const context = { origin, roomId: rooms[index]?.[0] };
      if (outcome.status === 'rejected')
        this.#deps.log.error(
          { err: outcome.reason, ...context },
          'Received events of a room could not be staged',
        );
    }
    const all = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [...outcome.value] : []));
    this.#deps.metrics.refused(all.filter(([, { error }]) => error !== undefined).length);
    return Object.fromEntries(all);
  }

  async #receiveInRoom(origin: string, roomId: string, pdus: readonly JsonValue[]): Promise<Outcomes> {
    const { heads, serverAcls, serverName, verifier } = this.#deps;
    const head = isStorableText(roomId) ? await heads.get(roomId) : undefined;
    if (!head?.servers.has(serverName)) return this.#receiveOutOfBand(head, pdus);
    const outcomes: Outcomes = new Map();
    const received = (await verifier.read(head.version, pdus)).map((result, index) => {
      if (!isRefusal(result)) return result;
      const id = claimedEventId(pdus[index]!, head.version);
      if (id !== undefined) outcomes.set(id, { error: result.error });
      return undefined;
    });
    const events = await this.#withoutDropped(
      uniqueEvents(received.filter((result) => result !== undefined)),
      outcomes,
    );
    if (await serverAcls.allows(head, origin)) await this.#stage(origin, head, events, outcomes);
    else {
      for (const { event } of events)
        outcomes.set(event.eventId, { error: 'The room does not admit your server' });
    }
    return outcomes;
  }

  /** Removes the events that modules drop; the response reports them to the sending server as accepted. */
  async #withoutDropped(
    events: readonly ReceivedEvent[],
    outcomes: Outcomes,
  ): Promise<readonly ReceivedEvent[]> {
    const { isDropped } = this.#deps.receivedEventChecks ?? {};
    if (!isDropped) return events;
    const remaining: ReceivedEvent[] = [];
    for (const receivedEvent of events) {
      if (await isDropped(receivedEvent.event)) outcomes.set(receivedEvent.event.eventId, accepted);
      else remaining.push(receivedEvent);
    }
    return remaining;
  }

  /** Receives events of a room that this server is not in: they can only end an invite or a knock. */
  async #receiveOutOfBand(head: RoomHead | undefined, pdus: readonly JsonValue[]): Promise<Outcomes> {
    const outcomes: Outcomes = new Map();
    for (const pdu of pdus) {
      const version = head && (await this.#outOfBandVersion(head, pdu));
      const id = version ? claimedEventId(pdu, version) : eventIdField(pdu);
      const isAccepted = head && version && (await this.#applyOutOfBand(head, pdu, version));
      if (id !== undefined)
        outcomes.set(id, isAccepted ? accepted : { error: 'This server is not in the room' });
    }
    return outcomes;
  }

  /**
   * Returns the room version for reading an event. For a room that this server was never in, the version is known only
   * from an invite or a knock.
   */
  async #outOfBandVersion(head: RoomHead, pdu: JsonValue): Promise<RoomVersion | undefined> {
    const userId = isJsonObject(pdu) && pdu['type'] === 'm.room.member' ? pdu['state_key'] : undefined;
    const isStorableUserId = typeof userId === 'string' && isStorableText(userId);
    const version = isStorableUserId ? await this.#deps.outOfBand.roomVersionFor(head, userId) : undefined;
    return version ?? (head.isEntered ? head.version : undefined);
  }

  async #applyOutOfBand(head: RoomHead, pdu: JsonValue, version: RoomVersion): Promise<boolean> {
    const { verifier, outOfBand } = this.#deps;
    const [read] = await verifier.read(version, [pdu]);
    const isMembership =
      read && !isRefusal(read) && read.event.type === 'm.room.member' && read.event.roomId === head.roomId;
    const [checked] = isMembership ? await verifier.check([read]) : [];
    return checked !== undefined && !isRefusal(checked) && outOfBand.apply(head, checked);
  }

  async #stage(
    origin: string,
    head: RoomHead,
    received: readonly ReceivedEvent[],
    outcomes: Outcomes,
  ): Promise<void> {
    const { verifier, staging, clock, workers, backoff } = this.#deps;
    const { roomId } = head;
    const newEvents: ReceivedEvent[] = [];
    const isKnown = await this.#knownLookup(head, received);
    for (const receivedEvent of received) {
      const error = this.#problemOf(receivedEvent.event, head);
      const id = receivedEvent.event.eventId;
      if (error === undefined && !isKnown(id)) newEvents.push(receivedEvent);
      else outcomes.set(id, error === undefined ? accepted : { error });
    }
    const toStage: VerifiedEvent[] = [];
    for (const [index, checked] of (await verifier.check(newEvents)).entries()) {
      const { eventId } = newEvents[index]!.event;
      outcomes.set(eventId, isRefusal(checked) ? { error: checked.error } : accepted);
      if (!isRefusal(checked) && !staging.has(eventId)) toStage.push(checked);
    }
    if (!staging.hasCapacity(roomId, toStage.length)) {
      const busy = { error: 'Too many events are queued: send this event again later' };
      for (const { event } of toStage) outcomes.set(event.eventId, busy);
      return;
    }
    await staging.add(roomId, origin, toStage, clock.now());
    if (toStage.length === 0) return;
    // A server that sends new events may have what it could not provide before, or admit this server again.
    // This ends its backoff, but processing the events of a slow origin still takes at most half of the time of the
    // room's worker.
    backoff.endForNow(roomId, origin);
    workers.wake(roomId);
  }

  /**
   * Returns a function that tells whether an event needs no staging: it is placed or staged already, or it has expired
   * and the timeline lacks it.
   */
  async #knownLookup(
    head: RoomHead,
    received: readonly ReceivedEvent[],
  ): Promise<(eventId: string) => boolean> {
    const { placement, staging } = this.#deps;
    const known = await placement.find(received.map(({ event }) => event.eventId));
    const expired = await placement.missingExpiredMessages(head, received);
    return (eventId) => {
      const stored = known.get(eventId);
      return (stored !== undefined && hasState(stored)) || staging.has(eventId) || expired.has(eventId);
    };
  }

  #problemOf(event: RoomEvent, { roomId }: RoomHead): string | undefined {
    if (event.roomId !== roomId) return 'The event belongs to another room';
    return isStorableText(event.eventId) ? undefined : 'The event id contains invalid characters';
  }
}

/**
 * The `event_id` of an event of room version 1 or 2; in later versions the event id is a hash, which depends on the
 * room version.
 */
function eventIdField(pdu: JsonValue): string | undefined {
  const id = isJsonObject(pdu) ? pdu['event_id'] : undefined;
  return isEventId(id) ? id : undefined;
}

function uniqueEvents(received: readonly ReceivedEvent[]): ReceivedEvent[] {
  return [...new Map(received.map((receivedEvent) => [receivedEvent.event.eventId, receivedEvent])).values()];
}
