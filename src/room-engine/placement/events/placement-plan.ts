import { type RoomEvent, stateMapKey } from '../../../protocol/index.ts';
import type { GroupChain } from '../../state/group-chain.ts';
import type { StoredEvent } from '../../stored-event.ts';
import type { AppendOptions } from '../../timeline/append.ts';
import type { Extremity } from '../../timeline/extremity.ts';
import type { WritableHead } from '../../timeline/writable-head.ts';
import type { PlaceOptions } from '../placement.ts';
import type { PlacementDeps } from '../placement-deps.ts';
import type { GroupState } from '../states/before-state.ts';
import { type CurrentStateChange, resolveCurrentState } from '../states/current-state.ts';
import type { EventExamination } from './examine-event.ts';

/**
 * Maximum number of rejected and soft-failed ancestors that are considered for an event: the event replaces the forward
 * extremities that it, or one of these ancestors, refers to.
 */
const maxRefusedAncestors = 100;

/** Options of placing a received event, or an event of a local user. */
export interface EventPlaceOptions extends PlaceOptions {
  /** The transaction of the client that sent the event; only for an event of a local user. */
  readonly transaction?: AppendOptions['transaction'];
}

/** An event that is ready to be placed, with the results of its checks. */
export interface ExaminedEvent {
  readonly event: RoomEvent;
  /** The PDU as canonical JSON. */
  readonly json: string;
  /** The event as it is stored already, for instance as an outlier; `undefined` for a new event. */
  readonly storedEvent: StoredEvent | undefined;
  readonly options: EventPlaceOptions;
  readonly examination: EventExamination;
  /** The nid, if it had to be allocated before the position of the event. */
  readonly earlyNid: number | undefined;
}

/** How an event will be placed; valid while the head does not change. */
export interface PlacementPlan {
  readonly isOnTimeline: boolean;
  /** The event becomes a forward extremity. */
  readonly isExtremity: boolean;
  /** The forward extremities that stay. */
  readonly remainingExtremities: readonly Extremity[];
  /** The event replaces all extremities and was sent on the current state, so the state after it becomes current. */
  readonly isLinear: boolean;
  /** The nid of the state key of the event; `undefined` when it does not set a state entry. */
  readonly keyNid: number | undefined;
  /** The nid, if it had to be allocated before the position of the event. */
  readonly earlyNid: number | undefined;
  /**
   * The chain that a state group after the event is added to; `undefined` when `stateAfter` already is this group, or
   * when the event sets no state entry and the current state is resolved.
   */
  readonly chain: GroupChain | undefined;
  /** The state group after the event, when it was created before the event is staged. */
  readonly stateAfter: GroupState | undefined;
  /** The change of the current state by state resolution; `undefined` where nothing was resolved or nothing changes. */
  readonly currentChange: CurrentStateChange | undefined;
}

/** The numbers that are assigned to a stored event, and `StoredEvent.resolves`. */
interface StoredNumbers {
  readonly nid: number;
  readonly stateGroup: number;
  readonly stream?: number | undefined;
  readonly resolves: boolean;
}

/**
 * Plans how examined events are placed: on the timeline or not, which forward extremities stay, how the current state
 * changes.
 */
export class PlacementPlanner {
  readonly #deps: PlacementDeps;

  constructor(deps: PlacementDeps) {
    this.#deps = deps;
  }

  /**
   * Plans the place of an event:
   * 1. rejected and soft-failed events stay off the timeline and change no state and no extremities;
   * 2. an event that replaces all extremities, and before which the state is the current state, extends that state;
   * 3. otherwise the current state is resolved from the states after all forward extremities.
   * Source: server-server API, "Checks performed on receipt of a PDU"; room versions, "State resolution".
   */
  async planFor(head: WritableHead, examined: ExaminedEvent): Promise<PlacementPlan> {
    const { event, examination } = examined;
    const isOnTimeline = examination.rejected === undefined && examination.softFailed === undefined;
    const remainingExtremities = isOnTimeline
      ? await this.#remainingExtremities(head, examination)
      : head.extremities;
    // A backward extremity has a successor on the timeline, so it becomes a forward extremity only if no other forward
    // extremity is left.
    const isExtremity =
      isOnTimeline && (!examination.isBackwardExtremity || remainingExtremities.length === 0);
    const isLinear =
      isExtremity && remainingExtremities.length === 0 && examination.stateBefore.id === head.chain.id;
    const makesGroup = event.stateKey !== undefined && examination.rejected === undefined;
    const keyNid = makesGroup
      ? await this.#deps.states.stateKeys.prepare(stateMapKey(event.type, event.stateKey ?? ''))
      : undefined;
    const { earlyNid } = examined;
    const plan = {
      isExtremity,
      isOnTimeline,
      remainingExtremities,
      isLinear,
      keyNid,
      earlyNid,
      stateAfter: undefined,
    };
    if (isLinear || !isOnTimeline) {
      const chain = isLinear ? head.chain : await examination.stateBefore.chain();
      return { ...plan, chain, currentChange: undefined };
    }
    const groups = remainingExtremities.map(({ stateGroup }) => stateGroup ?? 0);
    if (!isExtremity) {
      const end = { state: examination.stateBefore, unplacedEvent: undefined };
      const currentChange = await resolveCurrentState(this.#deps, head, groups, end);
      return { ...plan, chain: await examination.stateBefore.chain(), currentChange };
    }
    const groupAfterEvent =
      keyNid === undefined ? undefined : await this.#createGroupBeforePosition(head, examined, keyNid);
    const end = groupAfterEvent ?? { state: examination.stateBefore, unplacedEvent: undefined };
    const currentChange = await resolveCurrentState(this.#deps, head, [...groups, end.state.id], end);
    const early = groupAfterEvent
      ? { earlyNid: groupAfterEvent.unplacedEvent.nid, stateAfter: groupAfterEvent.state }
      : undefined;
    return { ...plan, ...early, chain: undefined, currentChange };
  }

  /**
   * Allocates the nid of an event and creates the state group after it, before the position of the event is reserved:
   * state resolution needs both.
   */
  async #createGroupBeforePosition(
    head: WritableHead,
    examined: ExaminedEvent,
    keyNid: number,
  ): Promise<{ state: GroupState; unplacedEvent: StoredEvent }> {
    const { storedEvent, examination } = examined;
    const earlyNid = examined.earlyNid ?? storedEvent?.nid ?? this.#allocateNid();
    const state = await this.#groupAfter(examination.stateBefore, keyNid, earlyNid);
    const unplacedEvent = storedEventFrom(head, examined, {
      nid: earlyNid,
      stateGroup: state.id,
      resolves: false,
    });
    if (!storedEvent) this.#deps.states.authEdges.add(earlyNid, examination.auth);
    return { state, unplacedEvent };
  }

  async #groupAfter(before: GroupState, keyNid: number, nid: number): Promise<GroupState> {
    const chain = await before.chain();
    const rows = chain.advance(this.#deps.states.groupIds.next(), new Map([[keyNid, nid]]));
    this.#deps.states.groups.add(rows);
    return {
      id: rows.id,
      chain: async () => chain.fork(),
      newGroups: [rows],
      // The row of the event's own state key is written with the event itself.
      newGroupKeys: [],
      resolvedFrom: [],
    };
  }

  /** Allocates a nid for an event whose position is reserved later. */
  #allocateNid(): number {
    const { streams, stream } = this.#deps;
    return streams.reserving((reserve) => {
      const reservation = reserve(stream);
      reservation.abandon();
      return reservation.position;
    });
  }

  /**
   * Returns the forward extremities that stay: extremities that are previous events neither of the event nor of its
   * rejected and soft-failed ancestors.
   */
  async #remainingExtremities(head: WritableHead, { prev }: EventExamination): Promise<readonly Extremity[]> {
    const prevEventIds = new Set(prev.map(({ event }) => event.eventId));
    let refused = prev.filter(({ rejected, softFailed }) => rejected || softFailed);
    for (let seen = 0; refused.length > 0 && seen < maxRefusedAncestors; seen += refused.length) {
      const ids = refused
        .flatMap(({ event }) => event.prevEventIds)
        .filter((eventId) => !prevEventIds.has(eventId));
      for (const eventId of ids) prevEventIds.add(eventId);
      const before = await this.#deps.events.getManyById(ids);
      refused = [...before.values()].filter(({ rejected, softFailed }) => rejected || softFailed);
    }
    return head.extremities.filter(({ eventId }) => !prevEventIds.has(eventId));
  }
}

/** Returns the event as it is stored. */
export function storedEventFrom(
  head: WritableHead,
  { event, examination, storedEvent, options }: ExaminedEvent,
  numbers: StoredNumbers,
): StoredEvent {
  return {
    nid: numbers.nid,
    roomNid: head.roomNid,
    event,
    stream: numbers.stream,
    stateGroup: numbers.stateGroup,
    stateBefore: examination.stateBefore.id,
    replaces: examination.replaces,
    rejected: examination.rejected !== undefined,
    softFailed: examination.softFailed !== undefined,
    distribute: options.distribute === true || storedEvent?.distribute === true,
    acceptedElsewhere: options.acceptedElsewhere === true,
    resolves: numbers.resolves,
    followsGap: numbers.stream !== undefined && examination.missing.length > 0,
    withheld: examination.withheld,
    outOfBand: false,
    redactedBy: storedEvent?.redactedBy ?? examination.redactedBy[0]?.nid,
  };
}
