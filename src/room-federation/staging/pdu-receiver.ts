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
import type { HeadReader, Placement, RoomHead, ServerAcls, VerifiedEvent } from '../../room-engine/index.ts';
import { isStorableText } from '../../room-engine/index.ts';
import { isRefusal, type Verifier } from '../checking/verifier.ts';
import { hasState } from '../settled.ts';
import type { Staging } from './staging.ts';

/** What became of one event of a transaction. */
export interface PduOutcome {
  /** Why it was not taken. */
  readonly error?: string;
}

/** What is done with memberships in rooms that this server is not in. */
export interface OutOfBandMemberships {
  /** By which version to read an event about a user, `undefined` where it can be of no use. */
  roomVersionFor(head: RoomHead, userId: string): Promise<RoomVersion | undefined>;
  /** @returns whether the event was of use */
  apply(head: RoomHead, event: VerifiedEvent): Promise<boolean>;
}

type Outcomes = Map<string, PduOutcome>;

const taken: PduOutcome = {};

const nothing: Outcomes = new Map();

interface Deps {
  readonly serverName: string;
  readonly heads: HeadReader;
  readonly serverAcls: ServerAcls;
  readonly placement: Placement;
  readonly verifier: Verifier;
  readonly staging: Staging;
  readonly clock: Clock;
  readonly log: Logger;
  readonly onRefused: (count: number) => void;
  readonly outOfBand: OutOfBandMemberships;
  /** Told of rooms in which events wait now. */
  readonly wake: (roomId: string) => void;
  /** Told of the server that has sent another server ACL of a room. */
  readonly onAcl: (roomId: string, origin: string) => void;
}

/** Takes events that other servers send, as far as they pass the first checks, and lets them wait for their places. */
export class PduReceiver {
  readonly #deps: Deps;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /**
   * By event id. Rooms do not wait for each other, nor does one that is broken stop the others.
   * @throws when nothing could be taken, so that the server sends it again
   */
  async receive(origin: string, pdus: readonly JsonValue[]): Promise<Record<string, PduOutcome>> {
    const rooms = [...Map.groupBy(pdus, (pdu) => (isJsonObject(pdu) ? pdu.room_id : undefined))];
    const outcomes = await Promise.allSettled(
      rooms.map(async ([roomId, ofRoom]) =>
        typeof roomId === 'string' ? this.#receiveInRoom(origin, roomId, ofRoom) : nothing,
      ),
    );
    const failures = outcomes.filter(({ status }) => status === 'rejected');
    const [failure] = failures;
    if (failure?.status === 'rejected' && failures.length === outcomes.length) throw failure.reason;
    for (const [index, outcome] of outcomes.entries()) {
      const context = { origin, roomId: rooms[index]?.[0] };
      if (outcome.status === 'rejected')
        this.#deps.log.error({ err: outcome.reason, ...context }, 'Events of a room could not be taken');
    }
    const all = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [...outcome.value] : []));
    this.#deps.onRefused(all.filter(([, { error }]) => error !== undefined).length);
    return Object.fromEntries(all);
  }

  async #receiveInRoom(origin: string, roomId: string, pdus: readonly JsonValue[]): Promise<Outcomes> {
    const { heads, serverAcls, serverName, verifier } = this.#deps;
    const head = isStorableText(roomId) ? await heads.get(roomId) : undefined;
    if (!head?.servers.has(serverName)) return this.#receiveFromOutside(head, pdus);
    const outcomes: Outcomes = new Map();
    const received = (await verifier.read(head.version, pdus)).map((one, index) => {
      if (!isRefusal(one)) return one;
      const id = claimedEventId(pdus[index]!, head.version);
      if (id !== undefined) outcomes.set(id, { error: one.error });
      return undefined;
    });
    const events = uniqueEvents(received.filter((one) => one !== undefined));
    if (await serverAcls.allows(head, origin)) await this.#take(origin, head, events, outcomes);
    else {
      for (const { event } of events)
        outcomes.set(event.eventId, { error: 'The room does not admit your server' });
    }
    return outcomes;
  }

  /** Events of a room that this server is not in: of use is only what ends an invite or a knock. */
  async #receiveFromOutside(head: RoomHead | undefined, pdus: readonly JsonValue[]): Promise<Outcomes> {
    const outcomes: Outcomes = new Map();
    for (const pdu of pdus) {
      const version = head && (await this.#outsideVersion(head, pdu));
      const id = version ? claimedEventId(pdu, version) : ownEventId(pdu);
      const isTaken = head && version && (await this.#takeFromOutside(head, pdu, version));
      if (id !== undefined) outcomes.set(id, isTaken ? taken : { error: 'This server is not in the room' });
    }
    return outcomes;
  }

  /** What a room's version is that this server was never in, only those know who have invited. */
  async #outsideVersion(head: RoomHead, pdu: JsonValue): Promise<RoomVersion | undefined> {
    const userId = isJsonObject(pdu) && pdu['type'] === 'm.room.member' ? pdu['state_key'] : undefined;
    const isUser = typeof userId === 'string' && isStorableText(userId);
    const version = isUser ? await this.#deps.outOfBand.roomVersionFor(head, userId) : undefined;
    return version ?? (head.isEntered ? head.version : undefined);
  }

  async #takeFromOutside(head: RoomHead, pdu: JsonValue, version: RoomVersion): Promise<boolean> {
    const { verifier, outOfBand: outside } = this.#deps;
    const [read] = await verifier.read(version, [pdu]);
    const isOfUse =
      read && !isRefusal(read) && read.event.type === 'm.room.member' && read.event.roomId === head.roomId;
    const [checked] = isOfUse ? await verifier.check([read]) : [];
    return checked !== undefined && !isRefusal(checked) && outside.apply(head, checked);
  }

  async #take(
    origin: string,
    head: RoomHead,
    received: readonly ReceivedEvent[],
    outcomes: Outcomes,
  ): Promise<void> {
    const { verifier, staging, clock, wake, onAcl } = this.#deps;
    const { roomId } = head;
    const fresh: ReceivedEvent[] = [];
    const isHere = await this.#here(received.map(({ event }) => event));
    for (const one of received) {
      const error = this.#problem(one.event, head);
      const id = one.event.eventId;
      if (error === undefined && !isHere(id)) fresh.push(one);
      else outcomes.set(id, error === undefined ? taken : { error });
    }
    const waiting: VerifiedEvent[] = [];
    for (const [index, checked] of (await verifier.check(fresh)).entries()) {
      const { eventId } = fresh[index]!.event;
      outcomes.set(eventId, isRefusal(checked) ? { error: checked.error } : taken);
      if (!isRefusal(checked) && !staging.has(eventId)) waiting.push(checked);
    }
    if (!staging.hasCapacity(roomId, waiting.length)) {
      const busy = { error: 'Too many events wait for their places here: send this again later' };
      for (const { event } of waiting) outcomes.set(event.eventId, busy);
      return;
    }
    await staging.add(roomId, origin, waiting, clock.now());
    if (waiting.some(({ event }) => event.type === 'm.room.server_acl')) onAcl(roomId, origin);
    if (waiting.length > 0) wake(roomId);
  }

  /** Events that nothing is left to be done for, or that wait already. */
  async #here(events: readonly RoomEvent[]): Promise<(eventId: string) => boolean> {
    const { placement, staging } = this.#deps;
    const known = await placement.find(events.map(({ eventId }) => eventId));
    return (eventId) => {
      const stored = known.get(eventId);
      return (stored !== undefined && hasState(stored)) || staging.has(eventId);
    };
  }

  #problem(event: RoomEvent, { roomId }: RoomHead): string | undefined {
    if (event.roomId !== roomId) return 'The event is of another room';
    return isStorableText(event.eventId) ? undefined : 'The event id is not text';
  }
}

/** The id that an event of room version 1 or 2 carries; others have theirs only once their room version is known. */
function ownEventId(pdu: JsonValue): string | undefined {
  const id = isJsonObject(pdu) ? pdu['event_id'] : undefined;
  return isEventId(id) ? id : undefined;
}

function uniqueEvents(received: readonly ReceivedEvent[]): ReceivedEvent[] {
  return [...new Map(received.map((one) => [one.event.eventId, one])).values()];
}
