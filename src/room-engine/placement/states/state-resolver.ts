import type { Cache, CacheRegistry } from '../../../kernel/caches/index.ts';
import type { TimeSlices } from '../../../kernel/time-slices.ts';
import {
  createEventIdOf,
  type RoomVersion,
  resolveStateInSteps,
  selectAuthEventKeys,
  stateMapKey,
} from '../../../protocol/index.ts';
import { authDifference, conflictedSubgraph } from '../../state/auth-chains.ts';
import type { AuthEdges } from '../../state/auth-edges.ts';
import type { StateGroups } from '../../state/state-groups.ts';
import type { WritableStateKeys } from '../../state/writable-state-keys.ts';
import type { StoredEvent } from '../../stored-event.ts';
import type { EventStore } from '../../timeline/event-store.ts';

/** Maximum number of cached resolutions; each is a few numbers. */
const maxRememberedResolutions = 10_000;

const createKey = stateMapKey('m.room.create', '');

/** The state of a room's head, whose entries are in memory. */
export interface ReferenceState {
  readonly group: number;
  /** The nids of all entries of the state; `undefined` when the head has changed. */
  readonly nids: () => Iterable<number> | undefined;
}

/** The result of resolving the states of several groups. */
export interface Resolution {
  /**
   * Returns the changes that lead from the state of a group to the resolved state: state key nid to event nid, 0 for
   * removed entries.
   */
  changesFrom(group: number): Map<number, number>;
}

export interface ResolverDeps {
  readonly caches: CacheRegistry;
  readonly events: EventStore;
  readonly groups: StateGroups;
  readonly stateKeys: WritableStateKeys;
  readonly authEdges: AuthEdges;
  readonly slices: TimeSlices;
}

/** An event that has its nid but is not stored yet. */
export type UnplacedEvent = StoredEvent;

/**
 * Resolves the states of groups. Reads only the entries that differ and what they depend on, so the work
 * grows with the length of the fork, not with the size of the room.
 */
export class StateResolver {
  readonly #deps: ResolverDeps;
  /** The group that each set of groups resolves to, by `keyOf` the set. */
  readonly #known: Cache<string, number>;

  constructor(deps: ResolverDeps) {
    this.#deps = deps;
    this.#known = deps.caches.create('state_resolutions', { size: maxRememberedResolutions });
  }

  /** Returns the group that these groups resolve to, when it is cached. */
  known(groups: Iterable<number>): number | undefined {
    return this.#known.get(keyOf(groups));
  }

  /** Caches the group that these groups resolve to. A single group resolves to itself, so nothing is cached for it. */
  remember(groups: Iterable<number>, group: number): void {
    const key = keyOf(groups);
    const isSingle = !key.includes(',');
    if (!isSingle) this.#known.set(key, group);
  }

  /** Clears the cache, because a cached group may not have reached the disk, or may have been removed. */
  forgetAll(): void {
    this.#known.clear();
  }

  /**
   * Resolves the states of groups:
   * 1. finds the conflicted entries: the entries that differ between the groups;
   * 2. finds the auth difference (algorithm versions 2 and 2.1) and the conflicted state subgraph (version 2.1);
   * 3. loads the full conflicted set with its auth events and power levels;
   * 4. runs the algorithm of the room version on the conflicted entries; unconflicted entries stay as they
   * are.
   * Source: room version 2 and room version 12, "State resolution".
   * @param groups two or more
   * @param reference a further state whose group `changesFrom` may be called with
   */
  async resolve(
    version: RoomVersion,
    groups: readonly number[],
    reference?: ReferenceState,
    unplacedEvent?: UnplacedEvent,
  ): Promise<Resolution> {
    const allGroups = [...new Set(reference ? [...groups, reference.group] : groups)];
    const { keys, entryIn } = await this.#deps.groups.differences(allGroups);
    const [first = 0] = groups;
    const resolved = new Map(keys.map((key) => [key, entryIn(first, key)]));
    const conflicted = keys.filter((key) =>
      groups.some((group) => entryIn(group, key) !== entryIn(first, key)),
    );
    if (conflicted.length > 0) {
      const common = async () => {
        // Unconflicted entries are the same in all groups. Most of them are read from one whole state; the entries
        // where only the reference differs from the groups are added.
        const referenceNids = reference?.nids();
        const nids = referenceNids ?? (await this.#deps.groups.load(first)).values();
        const source = referenceNids && reference ? reference.group : first;
        const differing = new Set(keys.map((key) => entryIn(source, key)));
        const unconflicted = keys.filter((key) => !conflicts.has(key)).map((key) => entryIn(first, key));
        return [
          ...[...nids].filter((nid) => !differing.has(nid)),
          ...unconflicted.filter((nid) => nid !== 0),
        ];
      };
      const conflicts = new Set(conflicted);
      const states = distinctStates(groups, conflicted, entryIn);
      const revised = await this.#resolve(version, { first, states, conflicted, common, unplacedEvent });
      for (const key of conflicted) resolved.set(key, revised.get(key) ?? 0);
    }
    return {
      changesFrom: (group) => new Map([...resolved].filter(([key, nid]) => nid !== entryIn(group, key))),
    };
  }

  async #resolve(version: RoomVersion, conflict: Conflict): Promise<Map<number, number>> {
    const { stateKeys, authEdges } = this.#deps;
    const { first, states, conflicted, common, unplacedEvent } = conflict;
    const names = new Map<number, string>();
    for (const [index, name] of (await stateKeys.names(conflicted)).entries()) {
      names.set(conflicted[index] ?? 0, name);
    }
    const nids = new Set(states.flatMap((state) => [...state.values()]));
    const isFirstAlgorithm = version.stateResolution === 'v1';
    const difference = isFirstAlgorithm
      ? []
      : await authDifference(
          authEdges,
          states.map((state) => new Set(state.values())),
          common,
        );
    const subgraph = version.stateResolution === 'v2.1' ? await conflictedSubgraph(authEdges, nids) : [];
    const loadedEvents = new LoadedEvents(this.#deps.events, unplacedEvent);
    const fullConflictedSet = await loadedEvents.load(new Set([...nids, ...difference, ...subgraph]));
    const authState = await this.#unconflictedAuthState(
      version,
      fullConflictedSet,
      first,
      new Set(names.values()),
      loadedEvents,
    );
    await loadedEvents.loadAround(fullConflictedSet, [...authState.values()]);
    const idOf = (nid: number) => loadedEvents.byNid(nid)?.event.eventId ?? '';
    const sets = states.map((state) => {
      const set = new Map<string, string>();
      for (const [key, stored] of authState) set.set(key, stored.event.eventId);
      for (const [key, nid] of state) set.set(names.get(key) ?? '', idOf(nid));
      return set;
    });
    const idsOf = (numbers: Iterable<number>) => [...numbers].map(idOf).filter((id) => id !== '');
    const steps = resolveStateInSteps(version, sets, {
      event: (eventId) => loadedEvents.byId(eventId)?.event,
      isRejected: (eventId) => loadedEvents.byId(eventId)?.rejected === true,
      authChainDifference: () => idsOf(difference),
      conflictedSubgraph: () => idsOf(subgraph),
    });
    const resolved = await this.#deps.slices.run(steps);
    const revised = new Map<number, number>();
    for (const [key, name] of names) {
      const eventId = resolved.get(name);
      const stored = eventId === undefined ? undefined : loadedEvents.byId(eventId);
      if (stored) revised.set(key, stored.nid);
    }
    return revised;
  }

  /** Returns the unconflicted entries that the auth checks of these events may read. */
  async #unconflictedAuthState(
    version: RoomVersion,
    events: readonly StoredEvent[],
    group: number,
    conflicted: ReadonlySet<string>,
    loadedEvents: LoadedEvents,
  ): Promise<Map<string, StoredEvent>> {
    const keys = new Set([createKey, stateMapKey('m.room.power_levels', '')]);
    for (const { event } of events) for (const key of selectAuthEventKeys(event, version)) keys.add(key);
    for (const key of conflicted) keys.delete(key);
    const nids = await this.#deps.stateKeys.findMany(keys);
    const state = (await this.#deps.groups.entries([group], [...nids.values()])).get(group);
    await loadedEvents.load(new Set(state?.values() ?? []));
    const authState = new Map<string, StoredEvent>();
    for (const [key, keyNid] of nids) {
      const stored = loadedEvents.byNid(state?.get(keyNid) ?? 0);
      if (stored) authState.set(key, stored);
    }
    return authState;
  }
}

/** The conflicted entries of some groups. */
interface Conflict {
  /** One of the groups: unconflicted entries are read from its state. */
  readonly first: number;
  /** The conflicted parts of the states: state key nid to event nid. */
  readonly states: readonly ReadonlyMap<number, number>[];
  /** The state key nids of the conflicted entries. */
  readonly conflicted: readonly number[];
  /** The nids of the unconflicted entries. */
  readonly common: () => Promise<Iterable<number>>;
  readonly unplacedEvent: UnplacedEvent | undefined;
}

/** The events of one resolution, in memory while it runs. */
class LoadedEvents {
  readonly #store: EventStore;
  readonly #byNid = new Map<number, StoredEvent>();
  readonly #byId = new Map<string, StoredEvent>();

  constructor(store: EventStore, unplacedEvent: StoredEvent | undefined) {
    this.#store = store;
    if (unplacedEvent) this.#add(unplacedEvent);
  }

  byNid(nid: number): StoredEvent | undefined {
    return this.#byNid.get(nid);
  }

  byId(eventId: string): StoredEvent | undefined {
    return this.#byId.get(eventId);
  }

  /** Loads events into memory. @returns the events that are stored */
  async load(nids: ReadonlySet<number>): Promise<StoredEvent[]> {
    const missing = [...nids].filter((nid) => nid !== 0 && !this.#byNid.has(nid));
    for (const stored of (await this.#store.getMany(missing)).values()) this.#add(stored);
    return [...nids].map((nid) => this.#byNid.get(nid)).filter((stored) => stored !== undefined);
  }

  /**
   * Loads the auth events of `events`, and the create event, because no event refers to it since room version 12. For
   * the mainline ordering, loads the chains of power levels events that lead back from `events` and `authState`.
   */
  async loadAround(events: readonly StoredEvent[], authState: readonly StoredEvent[]): Promise<void> {
    const creates = events.slice(0, 1).map(({ event }) => createEventIdOf(event.roomId));
    let pending = [...events, ...authState.filter(isPowerLevels)];
    for (let createIds = creates; pending.length > 0; createIds = []) {
      const ids = new Set([...createIds, ...pending.flatMap(({ event }) => event.authEventIds)]);
      const missing = [...ids].filter((eventId) => !this.#byId.has(eventId));
      const authEvents = [...(await this.#store.getManyById(missing)).values()];
      for (const stored of authEvents) this.#add(stored);
      pending = authEvents.filter(isPowerLevels);
    }
  }

  #add(stored: StoredEvent): void {
    this.#byNid.set(stored.nid, stored);
    this.#byId.set(stored.event.eventId, stored);
  }
}

const isPowerLevels = ({ event }: StoredEvent) => event.type === 'm.room.power_levels';

/** Returns the states of the groups without duplicates, restricted to `keys`. */
function distinctStates(
  groups: readonly number[],
  keys: readonly number[],
  entryIn: (group: number, key: number) => number,
): Map<number, number>[] {
  const states = new Map<string, Map<number, number>>();
  for (const group of groups) {
    const entries = keys.map((key): [number, number] => [key, entryIn(group, key)]);
    const text = entries.map(([, nid]) => nid).join();
    if (!states.has(text)) states.set(text, new Map(entries.filter(([, nid]) => nid !== 0)));
  }
  return [...states.values()];
}

/** Returns the cache key of a set of groups. It does not depend on the order of the groups. */
const keyOf = (groups: Iterable<number>) => [...new Set(groups)].sort((a, b) => a - b).join();
