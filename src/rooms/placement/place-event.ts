import { forbidden, notFound, type RoomEvent, stateKeyOf } from '../../protocol/index.ts';
import type { GroupChain } from '../state/group-chain.ts';
import type { StoredEvent } from '../stored-event.ts';
import type { AppendOptions } from '../timeline/append.ts';
import type { PreparedWrite } from '../timeline/event-writer.ts';
import type { Extremity, RoomHead } from '../timeline/room-head.ts';
import { type BeforeStates, type GroupState, groupsOf } from './before-state.ts';
import {
  type AppliedChange,
  applyCurrentState,
  type CurrentChange,
  changeOfCurrentState,
} from './current-state.ts';
import { ExamineEvent, type Findings } from './examine-event.ts';
import type { PlaceOptions } from './placement.ts';
import type { PlacementParts } from './placement-parts.ts';
import type { VerifiedEvent } from './verified-event.ts';

/** An event that has its place, and when that is on disk. */
export interface PlacedEvent {
  readonly stored: StoredEvent;
  readonly durable: Promise<void>;
  /** What comes next in the room may only be looked at when this is on disk. */
  readonly isBarrier: boolean;
}

/** Events that were hidden, behind which the extremities are looked for that an event replaces. */
const mostHidden = 100;

/** Answers that are taken on the way back from an event behind a wide gap, of a hundred events each. */
const mostAnswers = 100;

/** Options of events, those of local users included. */
export interface OwnPlaceOptions extends PlaceOptions {
  readonly transaction?: AppendOptions['transaction'];
}

/** An event on its way to its place. */
interface Arrival {
  readonly event: RoomEvent;
  readonly json: string;
  readonly known: StoredEvent | undefined;
  readonly options: OwnPlaceOptions;
  readonly found: Findings;
  /** A number that it was given early. */
  readonly number: number | undefined;
}

/** Where an event goes, worked out against a head that has not moved since. */
interface Course {
  readonly isOnTimeline: boolean;
  /** It is a forward extremity. */
  readonly isEnd: boolean;
  /** The extremities that stay. */
  readonly rest: readonly Extremity[];
  /** Nothing else is there: the state after the event is the current one. */
  readonly isLinear: boolean;
  /** The entry of the state that it sets; absent where it sets none. */
  readonly keyNid: number | undefined;
  /** The number that it was given early. */
  readonly number: number | undefined;
  /** To make the group after the event from, when that was not made early. */
  readonly chain: GroupChain | undefined;
  /** The group after the event, when it was made early. */
  readonly after: GroupState | undefined;
  readonly change: CurrentChange | undefined;
}

/**
 * Puts received events at their places: one at a time in each room, while local users may send.
 * Source: server-server API, "Checks performed on receipt of a PDU", "Soft failure".
 */
export class PlaceEvent {
  readonly #parts: PlacementParts;
  readonly #before: BeforeStates;
  readonly #examine: ExamineEvent;

  constructor(parts: PlacementParts, before: BeforeStates) {
    this.#parts = parts;
    this.#before = before;
    this.#examine = new ExamineEvent(parts, before);
  }

  async place(
    roomId: string,
    { event, json }: VerifiedEvent,
    options: OwnPlaceOptions,
  ): Promise<PlacedEvent> {
    const { heads, events, writer, resolver, userRooms } = this.#parts;
    let number: number | undefined;
    for (;;) {
      const head = await heads.get(roomId);
      if (!head || head.chain.id === undefined) throw notFound('This server is not in the room');
      checkRoom(head, event);
      if (event.prevEventIds.length === 0) throw forbidden('Only the first event has none before it');
      const known = await events.getById(event.eventId);
      if (known && known.roomNid !== head.roomNid) throw forbidden('The event is of another room');
      if (known && hasPlace(known)) return this.#present(known, options);
      const [extremities, group] = [head.extremities, head.chain.id];
      const { stateBefore } = options;
      const found = await this.#examine.examine(head, event, { stateBefore, softFails: true, known });
      const made = [...found.before.made];
      try {
        refuseIfAsked(found, options);
        const arrival = { event, json, known, options, found, number };
        const course = await this.#course(head, arrival);
        made.push(...(course.after?.made ?? []));
        number = course.number;
        // Nothing may be awaited from here until the event is staged: the head must not change under it.
        if (head.broken || head.extremities !== extremities || head.chain.id !== group) continue;
        const write = this.#extend(head, { ...arrival, number }, course);
        made.length = 0;
        const durable = writer.stage(write).then(() => userRooms.renumbered(known, write.stored));
        durable.catch(() => resolver.forgetAll());
        const isBarrier = found.missing.length > 0 || found.fills || found.pendingTarget !== undefined;
        return { stored: write.stored, durable, isBarrier };
      } finally {
        this.#before.drop(made);
      }
    }
  }

  async #present(known: StoredEvent, { refuse }: PlaceOptions): Promise<PlacedEvent> {
    if (refuse && (known.rejected || known.softFailed)) throw forbidden('The event is not allowed');
    await this.#parts.writer.durable(known);
    return { stored: known, durable: Promise.resolve(), isBarrier: false };
  }

  /** Works out where the event goes. */
  async #course(head: RoomHead, arrival: Arrival): Promise<Course> {
    const { event, found } = arrival;
    const isOnTimeline = found.rejected === undefined && found.softFailed === undefined;
    const rest = isOnTimeline ? await this.#rest(head, found) : head.extremities;
    // What the timeline names already has something after it; what it names itself has that, too, from now on.
    const isEnd = isOnTimeline && (!found.fills || rest.length === 0);
    const isLinear = isEnd && rest.length === 0 && found.before.id === head.chain.id;
    const makesGroup = event.stateKey !== undefined && found.rejected === undefined;
    const keyNid = makesGroup
      ? await this.#parts.stateKeys.prepare(stateKeyOf(event.type, event.stateKey ?? ''))
      : undefined;
    const { number } = arrival;
    const course = { isEnd, isOnTimeline, rest, isLinear, keyNid, number, after: undefined };
    if (isLinear || !isOnTimeline) {
      const chain = isLinear ? head.chain : await found.before.chain();
      return { ...course, chain, change: undefined };
    }
    const groups = rest.map(({ stateGroup }) => stateGroup ?? 0);
    if (!isEnd) {
      const end = { state: found.before, newcomer: undefined };
      const change = await changeOfCurrentState(this.#parts, head, groups, end);
      return { ...course, chain: await found.before.chain(), change };
    }
    const after = keyNid === undefined ? undefined : await this.#afterEarly(head, arrival, keyNid);
    const end = after ?? { state: found.before, newcomer: undefined };
    const change = await changeOfCurrentState(this.#parts, head, [...groups, end.state.id], end);
    const early = after ? { number: after.newcomer.nid, after: after.state } : undefined;
    return { ...course, ...early, chain: undefined, change };
  }

  /** State is resolved with the event before its place is certain, so it needs its number and its group now. */
  async #afterEarly(
    head: RoomHead,
    arrival: Arrival,
    keyNid: number,
  ): Promise<{ state: GroupState; newcomer: StoredEvent }> {
    const { known, found } = arrival;
    const number = arrival.number ?? numberOf(known) ?? this.#burn();
    const state = await this.#groupAfter(found.before, keyNid, number);
    const newcomer = this.#storedAt(head, arrival, { nid: number, stateGroup: state.id, resolves: false });
    if (numberOf(known) === undefined) this.#parts.authEdges.add(number, found.auth);
    return { state, newcomer };
  }

  async #groupAfter(before: GroupState, keyNid: number, nid: number): Promise<GroupState> {
    const chain = await before.chain();
    const rows = chain.advance(this.#parts.groupIds.next(), new Map([[keyNid, nid]]));
    this.#parts.groups.add(rows);
    return { id: rows.id, chain: async () => chain.fork(), made: [rows], keys: [], resolves: [] };
  }

  /** A number for an event whose place comes later. */
  #burn(): number {
    const reservation = this.#parts.streams.reserve(this.#parts.stream);
    reservation.abandon();
    return reservation.position;
  }

  /** The extremities that the event leaves: those that it or hidden events before it do not name. */
  async #rest(head: RoomHead, { prev }: Findings): Promise<readonly Extremity[]> {
    const named = new Set(prev.map(({ event }) => event.eventId));
    let hidden = prev.filter(({ rejected, softFailed }) => rejected || softFailed);
    for (let seen = 0; hidden.length > 0 && seen < mostHidden; seen += hidden.length) {
      const ids = hidden.flatMap(({ event }) => event.prevEventIds).filter((eventId) => !named.has(eventId));
      for (const eventId of ids) named.add(eventId);
      const before = await this.#parts.events.getManyById(ids);
      hidden = [...before.values()].filter(({ rejected, softFailed }) => rejected || softFailed);
    }
    return head.extremities.filter(({ eventId }) => !named.has(eventId));
  }

  /** Gives the event its place, in memory. */
  #extend(head: RoomHead, arrival: Arrival, course: Course): PreparedWrite {
    const { event, json, known, found } = arrival;
    const { isEnd, isOnTimeline, rest, keyNid, chain, change } = course;
    const { streams, stream, groupIds, resolver } = this.#parts;
    const reservation = streams.reserve(stream);
    const { position } = reservation;
    const nid = arrival.number ?? numberOf(known) ?? position;
    const rows =
      chain && keyNid !== undefined ? chain.advance(groupIds.next(), new Map([[keyNid, nid]])) : undefined;
    const stateGroup = course.after?.id ?? rows?.id ?? found.before.id;
    const stored = this.#storedAt(head, arrival, {
      nid,
      stateGroup,
      stream: isOnTimeline ? position : undefined,
      resolves: isOnTimeline && hasOtherEffect(event, nid, course),
    });
    const applied = this.#apply(head, stored, course, position);
    if (found.before.resolves.length > 0) resolver.remember(found.before.resolves, found.before.id);
    if (isOnTimeline) {
      const { eventId, depth } = event;
      head.setExtremities(isEnd ? [...rest, { nid, eventId, depth, stateGroup }] : rest);
      resolver.remember(groupsOf(head), head.chain.id ?? 0);
      head.remember(stored);
    }
    if (found.redacts) head.redact(found.redacts, nid);
    return {
      head,
      stored,
      row: numberOf(known) === undefined ? 'new' : 'known',
      fact: isOnTimeline
        ? { roomId: head.roomId, position, onTimeline: true, stored, ...applied }
        : undefined,
      content: json,
      end: isOnTimeline ? { extremities: head.extremities, group: head.chain.id } : undefined,
      groups: [
        ...found.before.made,
        ...(course.after?.made ?? []),
        ...(rows ? [rows] : []),
        ...(change?.made ?? []),
      ],
      auth: event.stateKey !== undefined && numberOf(known) === undefined ? found.auth : [],
      redacts: found.redacts,
      transaction: arrival.options.transaction,
      reservation,
      remote: {
        stateKeys: keysOf(event, found.before, course),
        replacesNid: known?.unchecked ? known.nid : undefined,
        place: isOnTimeline && nid !== position ? position : undefined,
        // What is behind a hidden event is missed as well, once something comes after it.
        missing: found.rejected === undefined || found.fills ? found.missing : [],
        answersLeft: found.rejected === undefined ? mostAnswers : undefined,
        fills: isOnTimeline || found.fills,
        pendingTarget: found.pendingTarget,
        redactedTs: found.redactedBy?.event.originServerTs,
      },
    };
  }

  #apply(
    head: RoomHead,
    stored: StoredEvent,
    { isLinear, change, chain }: Course,
    position: number,
  ): AppliedChange {
    const { type, stateKey } = stored.event;
    if (change) return applyCurrentState(head, change, stored, position);
    if (!isLinear || stateKey === undefined || !chain) return { stateChanges: [], membershipChanges: [] };
    const entries = new Map([[stateKeyOf(type, stateKey), stored.nid]]);
    return applyCurrentState(
      head,
      { chain, entries, events: new Map(), keyNids: new Map() },
      stored,
      position,
    );
  }

  #storedAt(head: RoomHead, { event, found, known, options }: Arrival, at: Spot): StoredEvent {
    return {
      nid: at.nid,
      roomNid: head.roomNid,
      event,
      stream: at.stream,
      stateGroup: at.stateGroup,
      stateBefore: found.before.id,
      replaces: found.replaces,
      rejected: found.rejected !== undefined,
      softFailed: found.softFailed !== undefined,
      distribute: options.distribute === true || known?.distribute === true,
      resolves: at.resolves,
      followsGap: at.stream !== undefined && found.missing.length > 0,
      unchecked: false,
      redactedBy: known?.redactedBy ?? found.redactedBy?.nid,
    };
  }
}

interface Spot {
  readonly nid: number;
  readonly stateGroup: number;
  readonly stream?: number | undefined;
  readonly resolves: boolean;
}

/** The number of an event that keeps it. */
const numberOf = (known: StoredEvent | undefined) => (known?.unchecked === false ? known.nid : undefined);

/** Whether an event changes the current state in other ways than by being taken in. */
function hasOtherEffect(event: RoomEvent, nid: number, { isLinear, change }: Course): boolean {
  if (event.stateKey === undefined) return change !== undefined;
  if (!change) return !isLinear;
  return change.entries.size > 1 || change.entries.get(stateKeyOf(event.type, event.stateKey)) !== nid;
}

/** Whether nothing remains to be done for an event. */
export function hasPlace({ stream, softFailed, rejected, stateGroup }: StoredEvent): boolean {
  return stream !== undefined || softFailed || (rejected && stateGroup !== undefined);
}

export function checkRoom(room: { roomId: string; version: RoomEvent['version'] }, event: RoomEvent): void {
  if (event.roomId !== room.roomId || event.version !== room.version) {
    throw forbidden('The event is of another room');
  }
}

function refuseIfAsked({ rejected, softFailed }: Findings, { refuse }: PlaceOptions): void {
  const reason = rejected ?? softFailed;
  if (refuse && reason !== undefined) throw forbidden(reason);
}

/** The entries of the groups that are written with the event. */
function keysOf(event: RoomEvent, before: GroupState, { keyNid, change }: Course): string[] {
  const own = keyNid === undefined ? [] : [stateKeyOf(event.type, event.stateKey ?? '')];
  return [...before.keys, ...own, ...(change?.made.length ? change.entries.keys() : [])];
}
