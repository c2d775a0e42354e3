import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../kernel/clock.ts';
import { type Randomness, randomLetters } from '../../kernel/randomness.ts';
import type { Sequence, Stream, Streams } from '../../kernel/streams/index.ts';
import {
  authorize,
  type EventSigner,
  forbidden,
  type JsonObject,
  notFound,
  prepareEvent,
  type RoomVersion,
  referenceHash,
  selectAuthEventKeys,
  stateKeyOf,
  type UnsignedEvent,
} from '../../protocol/index.ts';
import type { StateKeys } from '../state/state-keys.ts';
import type { RoomFact, StateChange, StoredEvent } from '../stored-event.ts';
import type { EventStore } from './event-store.ts';
import type { EventWriter } from './event-writer.ts';
import { redactionTakesEffect } from './redaction.ts';
import { type Extremity, membershipChanges, type RoomHead } from './room-head.ts';
import type { RoomHeads } from './room-heads.ts';

/** An event that a local user wants to send; everything else follows from the room. */
export interface EventToSend {
  readonly type: string;
  /** Present for state events. */
  readonly stateKey?: string;
  readonly sender: string;
  readonly content: JsonObject;
  /** The event that an `m.room.redaction` redacts. */
  readonly redacts?: string;
  /** Milliseconds since the epoch; by default now. */
  readonly originServerTs?: number;
}

export interface AppendOptions {
  readonly transaction?: { readonly scope: number; readonly txnId: string };
  /** Send a state event also when it says what the current one says already. */
  readonly evenIfUnchanged?: boolean;
  /** Milliseconds since the epoch, for the first event of a new room. */
  readonly roomCreatedTs?: number;
}

/** Most events that one may name as its `prev_events`. Source: server-server API, "PDUs". */
const mostPrevEvents = 10;

/** An integer field of an event can not hold more. */
const greatestDepth = Number.MAX_SAFE_INTEGER;

/**
 * Adds the events of local users to their rooms. The check, the signature and the place in the room's history happen
 * in one go, without waiting for anything; only then does the event wait for the disk, together with others. So
 * senders in one room do not queue for each other's flush.
 */
export class Append {
  readonly #parts: AppendParts;

  constructor(parts: AppendParts) {
    this.#parts = parts;
  }

  /**
   * Resolves when the event is on disk. A state event that would change nothing is not sent: the present one is
   * returned.
   * @throws MatrixError M_NOT_FOUND for an unknown room, M_FORBIDDEN when the authorization rules say no, M_TOO_LARGE
   */
  async append(roomId: string, draft: EventToSend, options: AppendOptions = {}): Promise<StoredEvent> {
    const { stored, durable } = await this.#stage(roomId, draft, options);
    await durable;
    return stored;
  }

  /** Adds several events that belong together; they wait for the disk together. */
  async appendAll(roomId: string, drafts: readonly EventToSend[]): Promise<StoredEvent[]> {
    const staged: Staged[] = [];
    try {
      for (const draft of drafts) staged.push(await this.#stage(roomId, draft, {}));
    } finally {
      await Promise.all(staged.map(({ durable }) => durable));
    }
    return staged.map(({ stored }) => stored);
  }

  /**
   * Makes a room with its `m.room.create` event.
   * @param roomId absent in room versions in which it is the create event's hash
   */
  async create(version: RoomVersion, roomId: string | undefined, draft: EventToSend): Promise<StoredEvent> {
    const { heads, roomNids, stateKeys, clock } = this.#parts;
    await stateKeys.prepare(createKey);
    const now = clock.now();
    const place = { roomId, prev: [], authEventIds: [] };
    const unsigned = this.#prepareEvent({ ...draft, originServerTs: now }, version, place);
    const head = heads.create(roomNids.next(), unsigned.event.roomId, version);
    const { stored, durable } = this.#add(head, draft, { unsigned, prev: [] }, { roomCreatedTs: now });
    await durable;
    return stored;
  }

  async #stage(roomId: string, draft: EventToSend, options: AppendOptions): Promise<Staged> {
    for (;;) {
      const head = await this.#parts.heads.get(roomId);
      if (!head) throw notFound('Unknown room');
      const keys = this.#neededState(head, draft);
      await this.#prepare(head, draft, keys);
      // Nothing may be awaited from here until the event is staged: the head must not change under it.
      if (head.broken || !this.#isPrepared(head, keys)) continue;
      const unchanged = options.evenIfUnchanged ? undefined : this.#unchanged(head, draft);
      if (unchanged) return { stored: unchanged, durable: this.#parts.writer.settled() };
      return this.#add(head, draft, this.#build(head, draft), options);
    }
  }

  /** The entries of the current state that the checks will look at. */
  #neededState(head: RoomHead, draft: EventToSend): string[] {
    const keys = selectAuthEventKeys({ ...draft, stateKey: draft.stateKey }, head.version);
    keys.push(createKey);
    if (draft.stateKey !== undefined) keys.push(stateKeyOf(draft.type, draft.stateKey));
    return keys;
  }

  async #prepare(head: RoomHead, draft: EventToSend, keys: readonly string[]): Promise<void> {
    const { events, stateKeys } = this.#parts;
    const missing = keys
      .map((key) => head.state.get(key)?.nid)
      .filter((nid) => nid !== undefined)
      .filter((nid) => !events.peek(nid));
    if (missing.length > 0) await events.getMany(missing);
    if (draft.stateKey !== undefined) await stateKeys.prepare(stateKeyOf(draft.type, draft.stateKey));
    if (draft.redacts !== undefined) await events.getById(draft.redacts);
  }

  #isPrepared(head: RoomHead, keys: readonly string[]): boolean {
    return keys.every((key) => {
      const entry = head.state.get(key);
      return entry === undefined || this.#parts.events.peek(entry.nid) !== undefined;
    });
  }

  /** The present state event, when the draft says the same. */
  #unchanged(head: RoomHead, draft: EventToSend): StoredEvent | undefined {
    if (draft.stateKey === undefined) return undefined;
    const present = this.#stateEvent(head, draft.type, draft.stateKey);
    if (present?.event.sender !== draft.sender) return undefined;
    return isDeepStrictEqual(present.event.content, draft.content) ? present : undefined;
  }

  #stateEvent(head: RoomHead, type: string, stateKey: string): StoredEvent | undefined {
    const entry = head.entry(type, stateKey);
    return entry && this.#parts.events.peek(entry.nid);
  }

  #add(head: RoomHead, draft: EventToSend, built: Built, options: AppendOptions): Staged {
    const { streams, stream, writer } = this.#parts;
    const { unsigned, prev } = built;
    const { event } = unsigned;
    const verdict = authorize(event, (type, key) => this.#stateEvent(head, type, key)?.event);
    if (!verdict.allowed) throw forbidden(verdict.reason);
    const reservation = streams.reserve(stream);
    const stateBefore = head.chain.id;
    const group = this.#advanceState(head, draft, reservation.position);
    const stored: StoredEvent = {
      nid: reservation.position,
      roomNid: head.roomNid,
      event,
      stream: reservation.position,
      stateGroup: head.chain.id,
      stateBefore,
      rejected: false,
      softFailed: false,
      redactedBy: undefined,
    };
    const before = memberBefore(head, draft);
    const stateChanges = head.append(stored, nextExtremities(head, prev, stored));
    const redacts = this.#redact(head, stored);
    const durable = writer.stage(
      {
        head,
        stored,
        unsigned,
        extremities: head.extremities,
        group,
        stateChanges,
        transaction: options.transaction,
        redacts,
        roomCreatedTs: options.roomCreatedTs,
      },
      reservation,
      factOf(head, stored, stateChanges, before),
    );
    return { stored, durable };
  }

  #build(head: RoomHead, draft: EventToSend): Built {
    const prev =
      head.extremities.length <= mostPrevEvents
        ? head.extremities
        : [...head.extremities].sort((a, b) => b.depth - a.depth).slice(0, mostPrevEvents);
    const authEventIds = selectAuthEventKeys({ ...draft, stateKey: draft.stateKey }, head.version)
      .map((key) => head.state.get(key)?.eventId)
      .filter((eventId) => eventId !== undefined);
    const place = { roomId: head.roomId, prev, authEventIds };
    return { unsigned: this.#prepareEvent(draft, head.version, place), prev };
  }

  #prepareEvent(
    draft: EventToSend,
    version: RoomVersion,
    place: { roomId: string | undefined; prev: readonly Extremity[]; authEventIds: readonly string[] },
  ): UnsignedEvent {
    const deepest = place.prev.reduce((depth, extremity) => Math.max(depth, extremity.depth), 0);
    return prepareEvent(
      {
        roomId: place.roomId,
        type: draft.type,
        stateKey: draft.stateKey,
        sender: draft.sender,
        content: draft.content,
        redacts: draft.redacts,
        originServerTs: draft.originServerTs ?? this.#parts.clock.now(),
        depth: Math.min(deepest + 1, greatestDepth),
        authEventIds: place.authEventIds,
        prevEventIds: place.prev.map(({ eventId }) => eventId),
        ...(version.eventId === 'origin' ? this.#originChosen() : undefined),
      },
      version,
      this.#parts.signer,
    );
  }

  /** What only room versions 1 and 2 need: an id of our own choice, and hashes of the events that are referred to. */
  #originChosen() {
    const { randomness, signer, events } = this.#parts;
    return {
      eventId: `$${randomLetters(randomness, 18)}:${signer.serverName}`,
      referenceHash: (eventId: string) => {
        const stored = events.peekById(eventId);
        if (!stored) throw new Error(`event ${eventId} is not in memory`);
        return referenceHash(stored.event.pdu, stored.event.version);
      },
    };
  }

  /** Makes the state group of a state event. */
  #advanceState(head: RoomHead, draft: EventToSend, nid: number) {
    if (draft.stateKey === undefined) return undefined;
    const keyNid = this.#parts.stateKeys.peek(stateKeyOf(draft.type, draft.stateKey));
    if (keyNid === undefined) throw new Error('a state key was not prepared');
    return head.chain.advance(this.#parts.groupIds.next(), new Map([[keyNid, nid]]));
  }

  /** Marks the event that `stored` redacts. */
  #redact(head: RoomHead, stored: StoredEvent): StoredEvent | undefined {
    const targetId = stored.event.type === 'm.room.redaction' ? stored.event.redacts : undefined;
    const target = targetId === undefined ? undefined : this.#parts.events.peekById(targetId);
    if (!target || target.redactedBy !== undefined) return undefined;
    const state = (type: string, key: string) => this.#stateEvent(head, type, key)?.event;
    if (!redactionTakesEffect(stored.event, target.event, state)) return undefined;
    target.redactedBy = stored.nid;
    return target;
  }
}

interface Built {
  readonly unsigned: UnsignedEvent;
  /** The extremities that the event refers to. */
  readonly prev: readonly Extremity[];
}

interface Staged {
  readonly stored: StoredEvent;
  /** Resolves when the event is on disk. */
  readonly durable: Promise<void>;
}

export interface AppendParts {
  readonly heads: RoomHeads;
  readonly events: EventStore;
  readonly stateKeys: StateKeys;
  readonly groupIds: Sequence;
  readonly roomNids: Sequence;
  readonly writer: EventWriter;
  readonly streams: Streams;
  readonly stream: Stream<RoomFact>;
  readonly signer: EventSigner;
  readonly clock: Clock;
  readonly randomness: Randomness;
}

const createKey = stateKeyOf('m.room.create', '');

function memberBefore(head: RoomHead, draft: EventToSend) {
  const before = draft.stateKey === undefined ? undefined : head.membership(draft.stateKey);
  return () => before;
}

function nextExtremities(head: RoomHead, prev: readonly Extremity[], stored: StoredEvent): Extremity[] {
  const { eventId, depth } = stored.event;
  const rest = head.extremities.filter((extremity) => !prev.includes(extremity));
  return [...rest, { nid: stored.nid, eventId, depth }];
}

function factOf(
  head: RoomHead,
  stored: StoredEvent,
  stateChanges: readonly StateChange[],
  before: (userId: string) => ReturnType<RoomHead['membership']>,
): RoomFact {
  return {
    roomId: head.roomId,
    stored,
    stateChanges,
    membershipChanges: membershipChanges(stateChanges, before),
  };
}
