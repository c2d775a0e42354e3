import { type RoomEvent, stateMapKey } from '../../../protocol/index.ts';
import type { GroupChain } from '../../state/group-chain.ts';
import type { StoredEvent } from '../../stored-event.ts';
import type { AppendOptions } from '../../timeline/append.ts';
import type { Extremity } from '../../timeline/extremity.ts';
import type { WritableHead } from '../../timeline/writable-head.ts';
import type { PlaceOptions } from '../placement.ts';
import type { PlacementDeps } from '../placement-deps.ts';
import type { GroupState } from '../states/before-state.ts';
import { type CurrentChange, changeOfCurrentState } from '../states/current-state.ts';
import type { Findings } from './examine-event.ts';

/** Events that were hidden, behind which the extremities are looked for that an event replaces. */
const maxHidden = 100;

/** Options of events, those of local users included. */
export interface OwnPlaceOptions extends PlaceOptions {
  readonly transaction?: AppendOptions['transaction'];
}

/** An event on its way to its place. */
export interface Arrival {
  readonly event: RoomEvent;
  readonly json: string;
  readonly known: StoredEvent | undefined;
  readonly options: OwnPlaceOptions;
  readonly found: Findings;
  /** A number that it was given early. */
  readonly number: number | undefined;
}

/** Where an event goes, worked out against a head that has not moved since. */
export interface Course {
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

/** What is known of an event when it gets its place, or its number. */
interface Spot {
  readonly nid: number;
  readonly stateGroup: number;
  readonly stream?: number | undefined;
  readonly resolves: boolean;
}

/** Works out where events go that have been examined. */
export class EventCourses {
  readonly #deps: PlacementDeps;

  constructor(deps: PlacementDeps) {
    this.#deps = deps;
  }

  /** Works out where the event goes. */
  async of(head: WritableHead, arrival: Arrival): Promise<Course> {
    const { event, found } = arrival;
    const isOnTimeline = found.rejected === undefined && found.softFailed === undefined;
    const rest = isOnTimeline ? await this.#rest(head, found) : head.extremities;
    // What the timeline names already has something after it; what it names itself has that, too, from now on.
    const isEnd = isOnTimeline && (!found.fills || rest.length === 0);
    const isLinear = isEnd && rest.length === 0 && found.before.id === head.chain.id;
    const makesGroup = event.stateKey !== undefined && found.rejected === undefined;
    const keyNid = makesGroup
      ? await this.#deps.stateKeys.prepare(stateMapKey(event.type, event.stateKey ?? ''))
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
      const change = await changeOfCurrentState(this.#deps, head, groups, end);
      return { ...course, chain: await found.before.chain(), change };
    }
    const after = keyNid === undefined ? undefined : await this.#afterEarly(head, arrival, keyNid);
    const end = after ?? { state: found.before, newcomer: undefined };
    const change = await changeOfCurrentState(this.#deps, head, [...groups, end.state.id], end);
    const early = after ? { number: after.newcomer.nid, after: after.state } : undefined;
    return { ...course, ...early, chain: undefined, change };
  }

  /** State is resolved with the event before its place is certain, so it needs its number and its group now. */
  async #afterEarly(
    head: WritableHead,
    arrival: Arrival,
    keyNid: number,
  ): Promise<{ state: GroupState; newcomer: StoredEvent }> {
    const { known, found } = arrival;
    const number = arrival.number ?? known?.nid ?? this.#burn();
    const state = await this.#groupAfter(found.before, keyNid, number);
    const newcomer = storedAt(head, arrival, { nid: number, stateGroup: state.id, resolves: false });
    if (!known) this.#deps.authEdges.add(number, found.auth);
    return { state, newcomer };
  }

  async #groupAfter(before: GroupState, keyNid: number, nid: number): Promise<GroupState> {
    const chain = await before.chain();
    const rows = chain.advance(this.#deps.groupIds.next(), new Map([[keyNid, nid]]));
    this.#deps.groups.add(rows);
    return { id: rows.id, chain: async () => chain.fork(), made: [rows], keys: [], resolves: [] };
  }

  /** A number for an event whose place comes later. */
  #burn(): number {
    const { streams, stream } = this.#deps;
    return streams.reserving((reserve) => {
      const reservation = reserve(stream);
      reservation.abandon();
      return reservation.position;
    });
  }

  /** The extremities that the event leaves: those that it or hidden events before it do not name. */
  async #rest(head: WritableHead, { prev }: Findings): Promise<readonly Extremity[]> {
    const named = new Set(prev.map(({ event }) => event.eventId));
    let hidden = prev.filter(({ rejected, softFailed }) => rejected || softFailed);
    for (let seen = 0; hidden.length > 0 && seen < maxHidden; seen += hidden.length) {
      const ids = hidden.flatMap(({ event }) => event.prevEventIds).filter((eventId) => !named.has(eventId));
      for (const eventId of ids) named.add(eventId);
      const before = await this.#deps.events.getManyById(ids);
      hidden = [...before.values()].filter(({ rejected, softFailed }) => rejected || softFailed);
    }
    return head.extremities.filter(({ eventId }) => !named.has(eventId));
  }
}

/** The event as it is stored. */
export function storedAt(
  head: WritableHead,
  { event, found, known, options }: Arrival,
  at: Spot,
): StoredEvent {
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
    outOfBand: false,
    redactedBy: known?.redactedBy ?? found.redactedBy?.nid,
  };
}
