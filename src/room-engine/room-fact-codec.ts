import type { FactCodec } from '../kernel/streams/index.ts';
import type { JsonValue } from '../protocol/index.ts';
import type { MembershipChange, RoomFact, StateChange, StoredEvent } from './stored-event.ts';
import { EventFlag } from './tables.ts';
import { parseEvent } from './timeline/event-row.ts';
import { flagsOf } from './timeline/event-write.ts';

/** Events that a fact holds as JSON; of one with more changes of the state, the others are named by their nids. */
const maxEvents = 50;

/** A stored event as JSON; absent members are `undefined` in the event. */
interface EncodedEvent {
  readonly nid: number;
  readonly roomNid: number;
  readonly eventId: string;
  /** Of the room; of an event from outside of rooms, its own. */
  readonly version: string;
  /** The PDU as text, because JSON of other servers may hold numbers that parsing would change. */
  readonly pdu: string;
  readonly flags: number;
  readonly outside?: true;
  readonly stream?: number;
  readonly stateGroup?: number;
  readonly stateBefore?: number;
  readonly replaces?: number;
  readonly redactedBy?: number;
}

interface EncodedChange extends Pick<StateChange, 'type' | 'stateKey'> {
  /** Of the event; absent where the entry was removed. */
  readonly nid?: number;
  readonly previousNid?: number;
  readonly keyNid?: number;
}

interface EncodedFact extends Omit<RoomFact, 'stored' | 'stateChanges' | 'membershipChanges'> {
  readonly stored: EncodedEvent;
  readonly stateChanges: readonly EncodedChange[];
  readonly membershipChanges: readonly (Omit<MembershipChange, 'from'> & Partial<MembershipChange>)[];
  /** The events of `stateChanges` that are not `stored`. */
  readonly events: readonly EncodedEvent[];
}

/** Finds events by nid; all that facts name are on disk. */
export interface EventsByNid {
  getMany(nids: Iterable<number>): Promise<ReadonlyMap<number, StoredEvent>>;
}

/** The codec of the facts of rooms. Events that a fact only names are read from `events`. */
export class RoomFactCodec implements FactCodec<RoomFact> {
  readonly #events: EventsByNid;

  constructor(events: EventsByNid) {
    this.#events = events;
  }

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

  decode(json: JsonValue): RoomFact | Promise<RoomFact> {
    const encoded = json as unknown as EncodedFact;
    const stored = decodeEvent(encoded.stored);
    const events = new Map([...encoded.events.map(decodeEvent), stored].map((event) => [event.nid, event]));
    const named = encoded.stateChanges.map(({ nid }) => nid).filter((nid) => nid !== undefined);
    const missing = named.filter((nid) => !events.has(nid));
    if (missing.length === 0) return factOf(encoded, stored, events);
    return this.#events
      .getMany(missing)
      .then((found) => factOf(encoded, stored, new Map([...found, ...events])));
  }
}

function factOf(
  { stateChanges, membershipChanges, events: _, ...fact }: EncodedFact,
  stored: StoredEvent,
  events: ReadonlyMap<number, StoredEvent>,
): RoomFact {
  return {
    ...fact,
    stored,
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
  if (!event) throw new Error(`a fact names the event ${nid}, which is not in the database`);
  return event;
}

function encodeEvent(stored: StoredEvent): EncodedEvent {
  const {
    event,
    rejected,
    softFailed,
    distribute,
    resolves,
    followsGap,
    outOfBand: outside,
    ...numbers
  } = stored;
  const encoded = {
    ...numbers,
    eventId: event.eventId,
    version: event.version.id,
    pdu: JSON.stringify(event.pdu),
    flags: flagsOf(stored),
    ...(outside && { outside }),
  };
  // Members that are `undefined` are left out by JSON.
  return encoded as EncodedEvent;
}

function decodeEvent({ eventId, version, pdu, flags, outside, ...numbers }: EncodedEvent): StoredEvent {
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
    resolves: (flags & EventFlag.resolves) !== 0,
    followsGap: (flags & EventFlag.followsGap) !== 0,
    outOfBand: outside === true,
  };
}
