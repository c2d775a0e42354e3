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

/** Events that were hidden, behind which the extremities are looked for that an event replaces. */
const maxHiddenEvents = 100;

/** Options of events, those of local users included. */
export interface LocalPlaceOptions extends PlaceOptions {
  readonly transaction?: AppendOptions['transaction'];
}

/** An event on its way to its place. */
export interface ExaminedEvent {
  readonly event: RoomEvent;
  readonly json: string;
  readonly known: StoredEvent | undefined;
  readonly options: LocalPlaceOptions;
  readonly examination: EventExamination;
  /** A number that it was given early. */
  readonly earlyNid: number | undefined;
}

/** Where an event goes, worked out against a head that has not moved since. */
export interface PlacementPlan {
  readonly isOnTimeline: boolean;
  /** It is a forward extremity. */
  readonly isExtremity: boolean;
  /** The extremities that stay. */
  readonly remainingExtremities: readonly Extremity[];
  /** Nothing else is there: the state after the event is the current one. */
  readonly isLinear: boolean;
  /** The entry of the state that it sets; absent where it sets none. */
  readonly keyNid: number | undefined;
  /** The number that it was given early. */
  readonly earlyNid: number | undefined;
  /** To make the group after the event from, when that was not made early. */
  readonly chain: GroupChain | undefined;
  /** The group after the event, when it was made early. */
  readonly stateAfter: GroupState | undefined;
  readonly currentChange: CurrentStateChange | undefined;
}

/** What is known of an event when it gets its place, or its number. */
interface StoredNumbers {
  readonly nid: number;
  readonly stateGroup: number;
  readonly stream?: number | undefined;
  readonly resolves: boolean;
}

/** Works out where events go that have been examined. */
export class PlacementPlanner {
  readonly #deps: PlacementDeps;

  constructor(deps: PlacementDeps) {
    this.#deps = deps;
  }

  /** Works out where the event goes. */
  async planFor(head: WritableHead, examined: ExaminedEvent): Promise<PlacementPlan> {
    const { event, examination } = examined;
    const isOnTimeline = examination.rejected === undefined && examination.softFailed === undefined;
    const remainingExtremities = isOnTimeline
      ? await this.#remainingExtremities(head, examination)
      : head.extremities;
    // What the timeline names already has something after it; what it names itself has that, too, from now on.
    const isExtremity = isOnTimeline && (!examination.fills || remainingExtremities.length === 0);
    const isLinear =
      isExtremity && remainingExtremities.length === 0 && examination.stateBefore.id === head.chain.id;
    const makesGroup = event.stateKey !== undefined && examination.rejected === undefined;
    const keyNid = makesGroup
      ? await this.#deps.stateKeys.prepare(stateMapKey(event.type, event.stateKey ?? ''))
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
    const after = keyNid === undefined ? undefined : await this.#numberEarly(head, examined, keyNid);
    const end = after ?? { state: examination.stateBefore, unplacedEvent: undefined };
    const currentChange = await resolveCurrentState(this.#deps, head, [...groups, end.state.id], end);
    const early = after ? { earlyNid: after.unplacedEvent.nid, stateAfter: after.state } : undefined;
    return { ...plan, ...early, chain: undefined, currentChange };
  }

  /** State is resolved with the event before its place is certain, so it needs its number and its group now. */
  async #numberEarly(
    head: WritableHead,
    examined: ExaminedEvent,
    keyNid: number,
  ): Promise<{ state: GroupState; unplacedEvent: StoredEvent }> {
    const { known, examination } = examined;
    const earlyNid = examined.earlyNid ?? known?.nid ?? this.#allocateNid();
    const state = await this.#groupAfter(examination.stateBefore, keyNid, earlyNid);
    const unplacedEvent = storedEventFrom(head, examined, {
      nid: earlyNid,
      stateGroup: state.id,
      resolves: false,
    });
    if (!known) this.#deps.authEdges.add(earlyNid, examination.auth);
    return { state, unplacedEvent };
  }

  async #groupAfter(before: GroupState, keyNid: number, nid: number): Promise<GroupState> {
    const chain = await before.chain();
    const rows = chain.advance(this.#deps.groupIds.next(), new Map([[keyNid, nid]]));
    this.#deps.groups.add(rows);
    return {
      id: rows.id,
      chain: async () => chain.fork(),
      newGroups: [rows],
      newGroupKeys: [],
      resolvedFrom: [],
    };
  }

  /** A number for an event whose place comes later. */
  #allocateNid(): number {
    const { streams, stream } = this.#deps;
    return streams.reserving((reserve) => {
      const reservation = reserve(stream);
      reservation.abandon();
      return reservation.position;
    });
  }

  /** The extremities that the event leaves: those that it or hidden events before it do not name. */
  async #remainingExtremities(head: WritableHead, { prev }: EventExamination): Promise<readonly Extremity[]> {
    const named = new Set(prev.map(({ event }) => event.eventId));
    let hidden = prev.filter(({ rejected, softFailed }) => rejected || softFailed);
    for (let seen = 0; hidden.length > 0 && seen < maxHiddenEvents; seen += hidden.length) {
      const ids = hidden.flatMap(({ event }) => event.prevEventIds).filter((eventId) => !named.has(eventId));
      for (const eventId of ids) named.add(eventId);
      const before = await this.#deps.events.getManyById(ids);
      hidden = [...before.values()].filter(({ rejected, softFailed }) => rejected || softFailed);
    }
    return head.extremities.filter(({ eventId }) => !named.has(eventId));
  }
}

/** The event as it is stored. */
export function storedEventFrom(
  head: WritableHead,
  { event, examination, known, options }: ExaminedEvent,
  at: StoredNumbers,
): StoredEvent {
  return {
    nid: at.nid,
    roomNid: head.roomNid,
    event,
    stream: at.stream,
    stateGroup: at.stateGroup,
    stateBefore: examination.stateBefore.id,
    replaces: examination.replaces,
    rejected: examination.rejected !== undefined,
    softFailed: examination.softFailed !== undefined,
    distribute: options.distribute === true || known?.distribute === true,
    resolves: at.resolves,
    followsGap: at.stream !== undefined && examination.missing.length > 0,
    outOfBand: false,
    redactedBy: known?.redactedBy ?? examination.redactedBy?.nid,
  };
}
