import { forbidden, notFound, type RoomEvent, stateMapKey } from '../../../protocol/index.ts';
import type { StoredEvent } from '../../stored-event.ts';
import type { PreparedWrite, ReservePlace } from '../../timeline/event-writer.ts';
import type { WritableHead } from '../../timeline/writable-head.ts';
import type { PlaceOptions } from '../placement.ts';
import type { PlacementDeps } from '../placement-deps.ts';
import { type BeforeStates, type GroupState, groupsOf } from '../states/before-state.ts';
import { type AppliedChange, applyCurrentState } from '../states/current-state.ts';
import type { VerifiedEvent } from '../verified-event.ts';
import { ExamineEvent, type Findings } from './examine-event.ts';
import { type Arrival, type Course, EventCourses, type OwnPlaceOptions, storedAt } from './placement-plan.ts';

/** An event that has its place, and when that is on disk. */
export interface PlacedEvent {
  readonly stored: StoredEvent;
  readonly durable: Promise<void>;
  /** What comes next in the room may only be looked at when this is on disk. */
  readonly isBarrier: boolean;
}

/** Answers that are taken on the way back from an event behind a wide gap, of a hundred events each. */
const maxAnswers = 100;

/**
 * Puts received events at their places: one at a time in each room, while local users may send.
 * Source: server-server API, "Checks performed on receipt of a PDU", "Soft failure".
 */
export class PlaceEvent {
  readonly #deps: PlacementDeps;
  readonly #before: BeforeStates;
  readonly #examine: ExamineEvent;
  readonly #courses: EventCourses;

  constructor(deps: PlacementDeps, before: BeforeStates) {
    this.#deps = deps;
    this.#before = before;
    this.#examine = new ExamineEvent(deps, before);
    this.#courses = new EventCourses(deps);
  }

  async place(
    roomId: string,
    { event, json }: VerifiedEvent,
    options: OwnPlaceOptions,
  ): Promise<PlacedEvent> {
    const { heads, events, writer, resolver } = this.#deps;
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
        const course = await this.#courses.of(head, arrival);
        made.push(...(course.after?.made ?? []));
        number = course.number;
        // Nothing may be awaited from here until the event is staged: the head must not change under it.
        if (head.broken || head.extremities !== extremities || head.chain.id !== group) continue;
        const { stored, durable } = writer.extend(head, (reserve) => {
          const write = this.#extend(head, { ...arrival, number }, course, reserve);
          return { stored: write.stored, durable: writer.stage(write) };
        });
        made.length = 0;
        durable.catch(() => resolver.forgetAll());
        const isBarrier = found.missing.length > 0 || found.fills || found.pendingTarget !== undefined;
        return { stored, durable, isBarrier };
      } finally {
        this.#before.drop(made);
      }
    }
  }

  async #present(known: StoredEvent, { refuse }: PlaceOptions): Promise<PlacedEvent> {
    if (refuse && (known.rejected || known.softFailed)) throw forbidden('The event is not allowed');
    await this.#deps.writer.durable(known);
    return { stored: known, durable: Promise.resolve(), isBarrier: false };
  }

  /** Gives the event its place, in memory. */
  #extend(head: WritableHead, arrival: Arrival, course: Course, reserve: ReservePlace): PreparedWrite {
    const { event, json, known, found } = arrival;
    const { isEnd, isOnTimeline, rest, keyNid, chain, change } = course;
    const { groupIds, resolver } = this.#deps;
    const newGroup = chain && keyNid !== undefined ? { chain, keyNid, id: groupIds.next() } : undefined;
    const reservation = reserve();
    const { position } = reservation;
    const nid = arrival.number ?? known?.nid ?? position;
    const rows = newGroup?.chain.advance(newGroup.id, new Map([[newGroup.keyNid, nid]]));
    const stateGroup = course.after?.id ?? rows?.id ?? found.before.id;
    const stored = storedAt(head, arrival, {
      nid,
      stateGroup,
      stream: isOnTimeline ? position : undefined,
      resolves: isOnTimeline && hasOtherEffect(event, nid, course),
    });
    const applied = this.#apply(head, stored, course, position);
    if (isOnTimeline) {
      const { eventId, depth } = event;
      head.setExtremities(isEnd ? [...rest, { nid, eventId, depth, stateGroup }] : rest);
      head.remember(stored);
    }
    if (found.redacts) head.redact(found.redacts, nid);
    if (found.before.resolves.length > 0) resolver.remember(found.before.resolves, found.before.id);
    if (isOnTimeline) resolver.remember(groupsOf(head), head.chain.id ?? 0);
    const end = isOnTimeline ? { extremities: head.extremities, group: head.chain.id } : undefined;
    return {
      head,
      stored,
      row: known ? 'known' : 'new',
      fact: end && {
        roomId: head.roomId,
        position,
        onTimeline: true,
        stored,
        ...applied,
        end,
        redacts: found.redacts?.nid,
        transaction: arrival.options.transaction,
      },
      content: json,
      end,
      groups: [
        ...found.before.made,
        ...(course.after?.made ?? []),
        ...(rows ? [rows] : []),
        ...(change?.made ?? []),
      ],
      auth: event.stateKey !== undefined && !known ? found.auth : [],
      redacts: found.redacts,
      transaction: arrival.options.transaction,
      reservation,
      remote: {
        stateKeys: keysOf(event, found.before, course),
        place: isOnTimeline && nid !== position ? position : undefined,
        // What is behind a hidden event is missed as well, once something comes after it.
        missing: found.rejected === undefined || found.fills ? found.missing : [],
        answersLeft: found.rejected === undefined ? maxAnswers : undefined,
        fillsGap: isOnTimeline || found.fills,
        pendingTarget: found.pendingTarget,
        redactedTs: found.redactedBy?.event.originServerTs,
      },
    };
  }

  #apply(
    head: WritableHead,
    stored: StoredEvent,
    { isLinear, change, chain }: Course,
    position: number,
  ): AppliedChange {
    const { type, stateKey } = stored.event;
    if (change) return applyCurrentState(head, change, stored, position);
    if (!isLinear || stateKey === undefined || !chain) return { stateChanges: [], membershipChanges: [] };
    const entries = new Map([[stateMapKey(type, stateKey), stored.nid]]);
    return applyCurrentState(
      head,
      { chain, entries, events: new Map(), keyNids: new Map() },
      stored,
      position,
    );
  }
}

/** Whether an event changes the current state in other ways than by being taken in. */
function hasOtherEffect(event: RoomEvent, nid: number, { isLinear, change }: Course): boolean {
  if (event.stateKey === undefined) return change !== undefined;
  if (!change) return !isLinear;
  return change.entries.size > 1 || change.entries.get(stateMapKey(event.type, event.stateKey)) !== nid;
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
  const own = keyNid === undefined ? [] : [stateMapKey(event.type, event.stateKey ?? '')];
  return [...before.keys, ...own, ...(change?.made.length ? change.entries.keys() : [])];
}
