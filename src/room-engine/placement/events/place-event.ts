import { forbidden, notFound, type RoomEvent, stateMapKey } from '../../../protocol/index.ts';
import type { StoredEvent } from '../../stored-event.ts';
import type { RemoteWrite } from '../../timeline/event-write.ts';
import type { PreparedWrite, ReservePlace } from '../../timeline/event-writer.ts';
import type { WritableHead } from '../../timeline/writable-head.ts';
import type { VerifiedEvent } from '../../verified-event.ts';
import type { PlaceOptions } from '../placement.ts';
import type { PlacementDeps } from '../placement-deps.ts';
import { type BeforeStates, extremityGroups, type GroupState } from '../states/before-state.ts';
import { type AppliedChange, applyCurrentStateChange } from '../states/current-state.ts';
import { type EventExamination, EventExaminer } from './examine-event.ts';
import { showRedactions } from './pending-redactions.ts';
import {
  type EventPlaceOptions,
  type ExaminedEvent,
  type PlacementPlan,
  PlacementPlanner,
  storedEventFrom,
} from './placement-plan.ts';

/** A placed event, and when it is on disk. */
export interface PlacedEvent {
  readonly stored: StoredEvent;
  readonly durable: Promise<void>;
  /**
   * Whether the next event of the room must wait until this event is on disk, because placing the next event reads rows
   * that this event writes.
   */
  readonly nextEventWaitsForDisk: boolean;
}

/**
 * Maximum number of backfill responses, of up to a hundred events each, that are fetched in the background for the gap
 * before an event.
 */
const maxBackfillResponses = 100;

/**
 * Places received events. The caller places one event at a time in each room; local users may send events in the
 * meantime.
 * Source: server-server API, "Checks performed on receipt of a PDU", "Soft failure".
 */
export class EventPlacer {
  readonly #deps: PlacementDeps;
  readonly #beforeStates: BeforeStates;
  readonly #examiner: EventExaminer;
  readonly #planner: PlacementPlanner;

  constructor(deps: PlacementDeps, before: BeforeStates) {
    this.#deps = deps;
    this.#beforeStates = before;
    this.#examiner = new EventExaminer(deps, before);
    this.#planner = new PlacementPlanner(deps);
  }

  /**
   * Places an event as `Placement.place` does, and resolves as soon as the event is staged.
   * @throws MissingEvents, MatrixError as `Placement.place`
   */
  async place(
    roomId: string,
    { event, json }: VerifiedEvent,
    options: EventPlaceOptions,
  ): Promise<PlacedEvent> {
    const { heads, events, writer } = this.#deps;
    const { resolver } = this.#deps.states;
    let earlyNid: number | undefined;
    for (;;) {
      const head = await heads.get(roomId);
      if (!head || head.chain.id === undefined) throw notFound('This server is not in the room');
      requireSameRoom(head, event);
      if (event.prevEventIds.length === 0)
        throw forbidden('The event has no previous events; only m.room.create may have none');
      const storedEvent = await events.getById(event.eventId);
      if (storedEvent && storedEvent.roomNid !== head.roomNid)
        throw forbidden('The event belongs to another room');
      if (storedEvent && hasPlace(storedEvent)) return this.#alreadyPlaced(storedEvent, options);
      const extremities = head.extremities;
      const group = head.chain.id;
      const examination = await this.#examiner.examine(head, event, {
        ...options,
        softFails: true,
        storedEvent,
      });
      const newGroups = [...examination.stateBefore.newGroups];
      try {
        throwIfRefused(examination, options);
        const examined = { event, json, storedEvent, options, examination, earlyNid };
        const plan = await this.#planner.planFor(head, examined);
        newGroups.push(...(plan.stateAfter?.newGroups ?? []));
        earlyNid = plan.earlyNid;
        // Nothing may be awaited from here until the event is staged: the head must not change in between.
        if (head.broken || head.extremities !== extremities || head.chain.id !== group) continue;
        const { stored, durable } = writer.extend(head, (reserve) => {
          const write = this.#extend(head, { ...examined, earlyNid }, plan, reserve);
          const durable = writer.stage(write);
          if (examination.redactedBy.length === 0) return { stored: write.stored, durable };
          const shownRedactions = showRedactions(head, examination.redactedBy, reserve).map((prepared) =>
            writer.stage(prepared),
          );
          return {
            stored: write.stored,
            durable: Promise.all([durable, ...shownRedactions]).then(() => undefined),
          };
        });
        newGroups.length = 0;
        durable.catch(() => resolver.forgetAll());
        const nextEventWaitsForDisk =
          examination.missing.length > 0 ||
          examination.isBackwardExtremity ||
          examination.pendingTarget !== undefined;
        return { stored, durable, nextEventWaitsForDisk };
      } finally {
        this.#beforeStates.drop(newGroups);
      }
    }
  }

  async #alreadyPlaced(storedEvent: StoredEvent, { refuse }: PlaceOptions): Promise<PlacedEvent> {
    if (refuse && (storedEvent.rejected || storedEvent.softFailed))
      throw forbidden('The event is not allowed');
    await this.#deps.writer.durable(storedEvent);
    return { stored: storedEvent, durable: Promise.resolve(), nextEventWaitsForDisk: false };
  }

  /** Extends the head in memory by the event, and returns the rows to write. */
  #extend(
    head: WritableHead,
    examined: ExaminedEvent,
    plan: PlacementPlan,
    reserve: ReservePlace,
  ): PreparedWrite {
    const { event, json, storedEvent, examination } = examined;
    const { isOnTimeline, keyNid, chain, currentChange } = plan;
    const { groupIds, resolver } = this.#deps.states;
    const newGroup = chain && keyNid !== undefined ? { chain, keyNid, id: groupIds.next() } : undefined;
    const reservation = reserve();
    const { position } = reservation;
    const nid = examined.earlyNid ?? storedEvent?.nid ?? position;
    const groupRows = newGroup?.chain.advance(newGroup.id, new Map([[newGroup.keyNid, nid]]));
    const stateGroup = plan.stateAfter?.id ?? groupRows?.id ?? examination.stateBefore.id;
    const stored = storedEventFrom(head, examined, {
      nid,
      stateGroup,
      stream: isOnTimeline ? position : undefined,
      resolves: isOnTimeline && changesOtherState(event, nid, plan),
    });
    const applied = this.#apply(head, stored, plan, position);
    if (isOnTimeline) addToTimeline(head, stored, plan);
    if (examination.redacts) head.redact(examination.redacts, nid);
    if (examination.stateBefore.resolvedFrom.length > 0)
      resolver.remember(examination.stateBefore.resolvedFrom, examination.stateBefore.id);
    if (isOnTimeline) resolver.remember(extremityGroups(head), head.chain.id ?? 0);
    const end = isOnTimeline ? { extremities: head.extremities, group: head.chain.id } : undefined;
    return {
      head,
      stored,
      rowAction: storedEvent ? 'known' : 'new',
      fact: end && {
        roomId: head.roomId,
        position,
        onTimeline: true,
        stored,
        stateChanges: applied.stateChanges,
        membershipChanges: applied.membershipChanges,
        end,
        redacts: examination.redacts?.nid,
        transaction: examined.options.transaction,
      },
      content: json,
      end,
      groups: [
        ...examination.stateBefore.newGroups,
        ...(plan.stateAfter?.newGroups ?? []),
        ...(groupRows ? [groupRows] : []),
        ...(currentChange?.newGroups ?? []),
      ],
      auth: event.stateKey !== undefined && !storedEvent ? examination.auth : [],
      redacts: examination.redacts,
      transaction: examined.options.transaction,
      reservation,
      remote: remoteWriteOf(examined, plan, isOnTimeline && nid !== position ? position : undefined),
    };
  }

  #apply(
    head: WritableHead,
    stored: StoredEvent,
    { isLinear, currentChange, chain }: PlacementPlan,
    position: number,
  ): AppliedChange {
    const { type, stateKey } = stored.event;
    if (currentChange) return applyCurrentStateChange(head, currentChange, stored, position);
    if (!isLinear || stateKey === undefined || !chain) return { stateChanges: [], membershipChanges: [] };
    const entries = new Map([[stateMapKey(type, stateKey), stored.nid]]);
    return applyCurrentStateChange(
      head,
      { chain, entries, events: new Map(), keyNids: new Map() },
      stored,
      position,
    );
  }
}

/** Adds an event to the timeline of the head in memory, and sets the forward extremities. */
function addToTimeline(
  head: WritableHead,
  stored: StoredEvent,
  { isExtremity, remainingExtremities }: PlacementPlan,
): void {
  const { nid, stateGroup, event } = stored;
  const extremity = { nid, eventId: event.eventId, depth: event.depth, stateGroup };
  head.setExtremities(isExtremity ? [...remainingExtremities, extremity] : remainingExtremities);
  head.remember(stored);
}

/**
 * Returns the rows that are written only for placed events, not for events that `EventAppender` adds.
 * @param place the position on the timeline; absent when the nid of the event is its position
 */
function remoteWriteOf(
  { event, examination }: ExaminedEvent,
  plan: PlacementPlan,
  place: number | undefined,
): RemoteWrite {
  const { rejected, isBackwardExtremity, missing, redactedBy } = examination;
  return {
    stateKeys: newGroupKeys(event, examination.stateBefore, plan),
    place,
    // Gaps before a rejected event need not be filled, unless an event on the timeline refers to it.
    missing: rejected === undefined || isBackwardExtremity ? missing : [],
    backfillsLeft: rejected === undefined ? maxBackfillResponses : undefined,
    fillsGap: plan.isOnTimeline || isBackwardExtremity,
    pendingTarget: examination.pendingTarget,
    redactedTs: redactedBy[0]?.event.originServerTs,
  };
}

/**
 * Returns whether placing an event changes more of the current state than the entry of its own state key, or sets that
 * entry to another event.
 */
function changesOtherState(
  event: RoomEvent,
  nid: number,
  { isLinear, currentChange }: PlacementPlan,
): boolean {
  if (event.stateKey === undefined) return currentChange !== undefined;
  if (!currentChange) return !isLinear;
  return (
    currentChange.entries.size > 1 ||
    currentChange.entries.get(stateMapKey(event.type, event.stateKey)) !== nid
  );
}

/** Returns whether an event was placed, soft-failed, or rejected with known state: placing it again changes nothing. */
export function hasPlace({ stream, softFailed, rejected, stateGroup }: StoredEvent): boolean {
  return stream !== undefined || softFailed || (rejected && stateGroup !== undefined);
}

/** @throws MatrixError M_FORBIDDEN when the event is of another room, or was parsed by another room version */
export function requireSameRoom(
  room: { roomId: string; version: RoomEvent['version'] },
  event: RoomEvent,
): void {
  if (event.roomId !== room.roomId || event.version !== room.version) {
    throw forbidden('The event belongs to another room or room version');
  }
}

function throwIfRefused({ rejected, softFailed }: EventExamination, { refuse }: PlaceOptions): void {
  const reason = rejected ?? softFailed;
  if (refuse && reason !== undefined) throw forbidden(`The event is not allowed: ${reason}`);
}

/** The state keys of the groups that are written with the event. */
function newGroupKeys(
  event: RoomEvent,
  before: GroupState,
  { keyNid, currentChange }: PlacementPlan,
): string[] {
  const eventKeys = keyNid === undefined ? [] : [stateMapKey(event.type, event.stateKey ?? '')];
  return [
    ...before.newGroupKeys,
    ...eventKeys,
    ...(currentChange?.newGroups.length ? currentChange.entries.keys() : []),
  ];
}
