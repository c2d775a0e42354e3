import { authorize } from '../../authorization/index.ts';
import { type RoomEvent, type StateMap, stateMapKey } from '../../event.ts';
import { creatorsOf, powerLevelsContentOf } from '../../power-levels/index.ts';
import type { MemorySource } from './memory-source.ts';

/**
 * State resolution v2 and v2.1, following the text of the specification sentence by sentence, with sets
 * and loops and without regard for speed. The production implementation is compared with it.
 * Source: https://spec.matrix.org/latest/rooms/v2/#state-resolution,
 * https://spec.matrix.org/latest/rooms/v12/#state-resolution
 */
export class ReferenceResolution {
  readonly #source: MemorySource;
  readonly #isV21: boolean;
  /** Whether step 1 follows all auth events of power events, or only those in the full conflicted set. */
  readonly #chains: 'whole' | 'within the full conflicted set';

  constructor(
    source: MemorySource,
    algorithm: 'v2' | 'v2.1',
    chains: 'whole' | 'within the full conflicted set',
  ) {
    this.#source = source;
    this.#isV21 = algorithm === 'v2.1';
    this.#chains = chains;
  }

  /** Returns the resolved state. The numbered comments are the steps of the algorithm. */
  resolve(states: readonly StateMap<string>[]): Map<string, string> {
    const unconflicted = this.#unconflictedStateMap(states);
    const full = this.#fullConflictedSet(states);
    const x = this.#stepOne(full);
    const sorted = this.#reverseTopologicalPowerOrdering(x);
    // 2
    const initial = this.#isV21 ? new Map<string, string>() : new Map(unconflicted);
    const partial = this.#iterativeAuthChecks(initial, sorted);
    // 3
    const remaining = difference(full, x);
    const powerLevels = partial.get(stateMapKey('m.room.power_levels', ''));
    const ordered = this.#mainlineOrdering(powerLevels, remaining);
    // 4
    const result = this.#iterativeAuthChecks(partial, ordered);
    // 5
    for (const [key, id] of unconflicted) result.set(key, id);
    return result;
  }

  /** The entries that are the same in all states. */
  #unconflictedStateMap(states: readonly StateMap<string>[]): Map<string, string> {
    const keys = union(states.map((state) => new Set(state.keys())));
    const map = new Map<string, string>();
    for (const key of keys) {
      const values = new Set(states.map((state) => state.get(key)));
      const [value] = values;
      if (values.size === 1 && value !== undefined) map.set(key, value);
    }
    return map;
  }

  /** The events of the entries that are not the same in all states. */
  #conflictedStateSet(states: readonly StateMap<string>[]): Set<string> {
    const unconflicted = this.#unconflictedStateMap(states);
    const set = new Set<string>();
    for (const state of states) {
      for (const [key, id] of state) if (!unconflicted.has(key)) set.add(id);
    }
    return set;
  }

  /** The auth chain of an event: its auth events, their auth events, and so on to the create event. */
  #authChain(id: string): Set<string> {
    const chain = new Set<string>();
    let found = this.#authEventIds(id);
    while (found.length > 0) {
      const fresh = found.filter((authId) => !chain.has(authId));
      for (const authId of fresh) chain.add(authId);
      found = fresh.flatMap((authId) => this.#authEventIds(authId));
    }
    return chain;
  }

  #authEventIds(id: string): readonly string[] {
    return this.#source.event(id)?.authEventIds ?? [];
  }

  /** The events that are in the auth chains of some states and not of all. */
  #authDifference(states: readonly StateMap<string>[]): Set<string> {
    const chains = states.map((state) => union([...state.values()].map((id) => this.#authChain(id))));
    const [first, ...others] = chains;
    const inAll = others.reduce((common, chain) => common.intersection(chain), first!);
    return difference(union(chains), inAll);
  }

  /** The events on the paths along auth events from one conflicted event to another, both ends included. */
  #conflictedStateSubgraph(conflicted: Set<string>): Set<string> {
    const subgraph = new Set<string>();
    for (const start of conflicted) {
      for (const ancestor of this.#authChain(start)) {
        const leadsToConflicted =
          conflicted.has(ancestor) || !this.#authChain(ancestor).isDisjointFrom(conflicted);
        if (leadsToConflicted) subgraph.add(ancestor).add(start);
      }
    }
    return subgraph;
  }

  /** Leaves out events that are not known, because they cannot be examined. */
  #fullConflictedSet(states: readonly StateMap<string>[]): Set<string> {
    const conflicted = this.#conflictedStateSet(states);
    const parts = [conflicted, this.#authDifference(states)];
    if (this.#isV21) parts.push(this.#conflictedStateSubgraph(conflicted));
    return new Set([...union(parts)].filter((id) => this.#source.event(id) !== undefined));
  }

  /**
   * The set X of step 1: the power events of the full conflicted set, and the events of that set that are reached from
   * them by following auth events as `#chains` says.
   */
  #stepOne(full: Set<string>): Set<string> {
    const powerEvents = [...full].filter((id) => this.#isPowerEvent(this.#eventOf(id)));
    if (this.#chains === 'whole') {
      return union([
        new Set(powerEvents),
        ...powerEvents.map((id) => this.#authChain(id).intersection(full)),
      ]);
    }
    const x = new Set(powerEvents);
    for (const id of x) for (const authId of this.#authEventIds(id)) if (full.has(authId)) x.add(authId);
    return x;
  }

  #isPowerEvent({ type, stateKey, sender, content }: RoomEvent): boolean {
    if (type === 'm.room.power_levels' || type === 'm.room.join_rules') return stateKey === '';
    const isRemoval = content['membership'] === 'leave' || content['membership'] === 'ban';
    return type === 'm.room.member' && isRemoval && sender !== stateKey;
  }

  /** Kahn's algorithm, which takes the smallest of the events whose auth events have all been taken. */
  #reverseTopologicalPowerOrdering(x: Set<string>): string[] {
    const remaining = new Set(x);
    const order: string[] = [];
    while (remaining.size > 0) {
      const candidates = [...remaining].filter(
        (id) => !this.#authEventIds(id).some((authId) => remaining.has(authId)),
      );
      const [smallest] = candidates.sort((a, b) => this.#comparePower(a, b));
      order.push(smallest!);
      remaining.delete(smallest!);
    }
    return order;
  }

  #comparePower(x: string, y: string): number {
    const powers = [this.#senderPower(x), this.#senderPower(y)] as const;
    if (powers[0] !== powers[1]) return powers[0] > powers[1] ? -1 : 1;
    return this.#compareTime(x, y);
  }

  #compareTime(x: string, y: string): number {
    const a = this.#eventOf(x);
    const b = this.#eventOf(y);
    if (a.originServerTs !== b.originServerTs) return a.originServerTs - b.originServerTs;
    return x < y ? -1 : 1;
  }

  /** The power level of the sender according to the event's own auth events. */
  #senderPower(id: string): number {
    const event = this.#eventOf(id);
    const createId = event.version.createInAuthEvents ? undefined : `$${event.roomId.slice(1)}`;
    const create = createId === undefined ? this.#authEventOf(id, 'm.room.create') : this.#eventOf(createId);
    const creators = create === undefined ? new Set<string>() : creatorsOf(create);
    if (event.version.privilegedCreators && creators.has(event.sender)) return Number.POSITIVE_INFINITY;
    const powerLevels = this.#authEventOf(id, 'm.room.power_levels');
    if (powerLevels === undefined) return creators.has(event.sender) ? 100 : 0;
    const content = powerLevelsContentOf(powerLevels);
    return content.users?.get(event.sender) ?? content.named.get('users_default') ?? 0;
  }

  /** The power levels event P, the power levels among its auth events, and so on. */
  #mainline(powerLevels: string | undefined): string[] {
    const mainline: string[] = [];
    for (let p = powerLevels; p !== undefined; p = this.#authEventOf(p, 'm.room.power_levels')?.eventId) {
      mainline.push(p);
    }
    return mainline;
  }

  #mainlinePosition(id: string, mainline: readonly string[]): number {
    const [, ...cited] = this.#mainline(id);
    const nearest = cited.find((e) => mainline.includes(e));
    return nearest === undefined ? Number.POSITIVE_INFINITY : mainline.indexOf(nearest);
  }

  #mainlineOrdering(powerLevels: string | undefined, ids: Set<string>): string[] {
    const mainline = this.#mainline(powerLevels);
    return [...ids].sort((x, y) => {
      const positions = [this.#mainlinePosition(x, mainline), this.#mainlinePosition(y, mainline)] as const;
      if (positions[0] !== positions[1]) return positions[0] > positions[1] ? -1 : 1;
      return this.#compareTime(x, y);
    });
  }

  /** Adds the events in their order to the state, each if the authorization rules allow it in the state so far. */
  #iterativeAuthChecks(initial: StateMap<string>, ids: readonly string[]): Map<string, string> {
    const state = new Map(initial);
    for (const id of ids) {
      const event = this.#eventOf(id);
      const stateForRules = this.#acceptedAuthEvents(event);
      for (const [key, current] of state) stateForRules.set(key, this.#eventOf(current));
      const { allowed } = authorize(event, (type, stateKey) =>
        stateForRules.get(stateMapKey(type, stateKey)),
      );
      if (allowed) state.set(stateMapKey(event.type, event.stateKey!), id);
    }
    return state;
  }

  /** The auth events of an event that are not rejected; the rules use them where the state has no event. */
  #acceptedAuthEvents(event: RoomEvent): Map<string, RoomEvent> {
    const ids = event.version.createInAuthEvents
      ? event.authEventIds
      : [`$${event.roomId.slice(1)}`, ...event.authEventIds];
    const accepted = ids.filter((id) => this.#source.event(id) !== undefined && !this.#source.isRejected(id));
    return new Map(
      accepted.map((id) => {
        const authEvent = this.#eventOf(id);
        return [stateMapKey(authEvent.type, authEvent.stateKey!), authEvent];
      }),
    );
  }

  #authEventOf(id: string, type: string): RoomEvent | undefined {
    for (const authId of this.#authEventIds(id)) {
      const event = this.#source.event(authId);
      if (event?.type === type && event.stateKey === '') return event;
    }
    return undefined;
  }

  #eventOf(id: string): RoomEvent {
    return this.#source.event(id)!;
  }
}

function union(sets: readonly Set<string>[]): Set<string> {
  return new Set(sets.flatMap((set) => [...set]));
}

function difference(set: Set<string>, without: Set<string>): Set<string> {
  return new Set([...set].filter((id) => !without.has(id)));
}
