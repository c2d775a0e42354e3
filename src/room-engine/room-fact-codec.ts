import type { FactCodec } from '../kernel/streams/index.ts';
import type { JsonValue } from '../protocol/index.ts';
import {
  type MembershipChange,
  type RoomFact,
  type StateChange,
  type StoredEvent,
  withoutEnd,
} from './stored-event.ts';
import { EventFlag } from './tables.ts';
import { parseEvent } from './timeline/event-row.ts';
import { flagsOf } from './timeline/event-write.ts';

/**
 * Maximum number of events that an encoded fact contains as JSON, besides `stored`. Further state changes contain only
 * the nids of their events.
 */
const maxEvents = 50;

/** A stored event as JSON; absent fields are `undefined` in the event. */
interface EncodedEvent {
  readonly nid: number;
  readonly roomNid: number;
  readonly eventId: string;
  /** The room version of the event. For an out-of-band event, it may differ from the version of the room. */
  readonly version: string;
  /** The PDU as text, because remote servers' JSON may hold numbers that parsing would change. */
  readonly pdu: string;
  /** Bits of `EventFlag`. */
  readonly flags: number;
  readonly outOfBand?: true;
  readonly stream?: number;
  readonly stateGroup?: number;
  readonly stateBefore?: number;
  readonly replaces?: number;
  readonly redactedBy?: number;
}

interface EncodedChange extends Pick<StateChange, 'type' | 'stateKey'> {
  /** nid of the event; absent where the entry was removed. */
  readonly nid?: number;
  readonly previousNid?: number;
  readonly keyNid?: number;
}

interface EncodedFact extends Omit<RoomFact, 'stored' | 'stateChanges' | 'membershipChanges'> {
  readonly stored: EncodedEvent;
  readonly stateChanges: readonly EncodedChange[];
  readonly membershipChanges: readonly (Omit<MembershipChange, 'from'> & Partial<MembershipChange>)[];
  /** The events of `stateChanges`, without `stored`. */
  readonly events: readonly EncodedEvent[];
}

/** Reads events by nid. Every event that a fact refers to is on disk. */
export interface EventsByNid {
  getMany(nids: Iterable<number>): Promise<ReadonlyMap<number, StoredEvent>>;
}

/** The codec of the facts of rooms. Where a fact has only the nid of an event, the event is read from `events`. */
export class RoomFactCodec implements FactCodec<RoomFact> {
  readonly #events: EventsByNid;

  constructor(events: EventsByNid) {
    this.#events = events;
  }

  /** Converts a fact into JSON. */
  encode({ stored, stateChanges, ...fact }: RoomFact): JsonValue {
    const events = new Map<number, StoredEvent>();
    for (const { event } of stateChanges) {
      if (event && event !== stored && events.size < maxEvents) events.set(event.nid, event);
    }
    const encoded = {
      ...fact,
      stored: encodeEvent(stored),
      stateChanges: stateChanges.map(({ event, ...change }) => ({ ...change, nid: event?.nid })),
      events: [...events.values()].map(encodeEvent),
    };
    return encoded as unknown as JsonValue;
  }

  /** Restores a fact. @throws Error when an event that it refers to is not in the database */
  decode(json: JsonValue): RoomFact | Promise<RoomFact> {
    const encoded = json as unknown as EncodedFact;
    const stored = decodeEvent(encoded.stored);
    const events = new Map([...encoded.events.map(decodeEvent), stored].map((event) => [event.nid, event]));
    const changeNids = encoded.stateChanges.map(({ nid }) => nid).filter((nid) => nid !== undefined);
    const missing = changeNids.filter((nid) => !events.has(nid));
    if (missing.length === 0) return factOf(encoded, stored, events);
    return this.#events
      .getMany(missing)
      .then((eventsRead) => factOf(encoded, stored, new Map([...eventsRead, ...events])));
  }
}

function factOf(
  { stateChanges, membershipChanges, events: _, ...fact }: EncodedFact,
  stored: StoredEvent,
  events: ReadonlyMap<number, StoredEvent>,
): RoomFact {
  const { end } = fact;
  return {
    ...withoutEnd,
    ...fact,
    stored,
    end: end && {
      group: end.group,
      // JSON leaves out an undefined `stateGroup`.
      extremities: end.extremities.map((extremity) => ({ ...extremity, stateGroup: extremity.stateGroup })),
    },
    stateChanges: stateChanges.map(({ nid, ...change }) => ({
      previousNid: undefined,
      keyNid: undefined,
      ...change,
      event: nid === undefined ? undefined : findEvent(events, nid),
    })),
    membershipChanges: membershipChanges.map((change) => ({ from: undefined, ...change })),
  };
}

function findEvent(events: ReadonlyMap<number, StoredEvent>, nid: number): StoredEvent {
  const event = events.get(nid);
  if (!event) throw new Error(`a fact refers to the event ${nid}, which is not in the database`);
  return event;
}

function encodeEvent(stored: StoredEvent): EncodedEvent {
  const {
    event,
    rejected,
    softFailed,
    distribute,
    acceptedElsewhere,
    resolves,
    followsGap,
    withheld,
    outOfBand,
    ...numbers
  } = stored;
  const encoded = {
    ...numbers,
    eventId: event.eventId,
    version: event.version.id,
    pdu: JSON.stringify(event.pdu),
    flags: flagsOf(stored),
    ...(outOfBand && { outOfBand }),
  };
  // JSON leaves out fields that are `undefined`.
  return encoded as EncodedEvent;
}

function decodeEvent({ eventId, version, pdu, flags, outOfBand, ...numbers }: EncodedEvent): StoredEvent {
  return {
    stream: undefined,
    stateGroup: undefined,
    stateBefore: undefined,
    replaces: undefined,
    redactedBy: undefined,
    ...numbers,
    event: parseEvent(pdu, version, eventId),
    rejected: (flags & EventFlag.rejected) !== 0,
    softFailed: (flags & EventFlag.softFailed) !== 0,
    distribute: (flags & EventFlag.distribute) !== 0,
    acceptedElsewhere: (flags & EventFlag.acceptedElsewhere) !== 0,
    resolves: (flags & EventFlag.resolves) !== 0,
    followsGap: (flags & EventFlag.followsGap) !== 0,
    withheld: (flags & EventFlag.withheld) !== 0,
    outOfBand: outOfBand === true,
  };
}
