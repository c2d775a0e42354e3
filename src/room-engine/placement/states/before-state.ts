import { type RoomVersion, stateMapKey } from '../../../protocol/index.ts';
import { GroupChain, type GroupRows } from '../../state/group-chain.ts';
import type { StoredEvent } from '../../stored-event.ts';
import type { WritableHead } from '../../timeline/writable-head.ts';
import { MissingEvents } from '../missing-events.ts';
import type { StateAfterEvent, SuppliedState } from '../placement.ts';
import type { PlacementDeps } from '../placement-deps.ts';

/** Maximum number of rejected events to follow in search of the accepted event that they replaced. */
const maxRejectedInRow = 20;

type Deps = Pick<PlacementDeps, 'events' | 'states' | 'slices'>;

/** A state group to build on, and the new groups that must be written with it. */
export interface GroupState {
  readonly id: number;
  /** Returns a chain that ends in the group. */
  readonly chain: () => Promise<GroupChain>;
  readonly newGroups: readonly GroupRows[];
  /** `stateMapKey` of the entries in `newGroups`. */
  readonly newGroupKeys: readonly string[];
  /** The groups that this group was resolved from; empty when nothing was resolved. */
  readonly resolvedFrom: readonly number[];
}

/** A state that a remote server supplied, with the state key nids of its entries by `stateMapKey`. */
export interface ReceivedState extends GroupState {
  readonly keyNids: ReadonlyMap<string, number>;
}

/**
 * Finds or creates the state groups before events. New groups can be read at once; a caller that does not write the new
 * groups must call `drop`.
 */
export class BeforeStates {
  readonly #deps: Deps;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /**
   * Returns the state before an event from the state groups after its previous events: the group itself, or the
   * resolution of several groups.
   * @param head if present, its current state is used where the groups are those of its forward extremities
   */
  async afterGroups(
    version: RoomVersion,
    groups: readonly number[],
    head: WritableHead | undefined,
  ): Promise<GroupState> {
    const { resolver } = this.#deps.states;
    const distinct = [...new Set(groups)];
    const [first = 0] = distinct;
    if (distinct.length <= 1) return this.#existingGroup(first, head);
    const atEnd = head && sameGroups(distinct, extremityGroups(head)) ? head.chain.id : undefined;
    const knownGroup = atEnd ?? resolver.known(distinct);
    if (knownGroup !== undefined) return this.#existingGroup(knownGroup, head);
    const resolution = await resolver.resolve(version, distinct);
    const changes = distinct.map((group) => ({ group, delta: resolution.changesFrom(group) }));
    const [nearest] = changes.sort((a, b) => a.delta.size - b.delta.size);
    if (!nearest) throw new Error('state resolution received no state groups');
    if (nearest.delta.size === 0) {
      resolver.remember(distinct, nearest.group);
      return this.#existingGroup(nearest.group, head);
    }
    const names = await this.#deps.states.stateKeys.names([...nearest.delta.keys()]);
    const chain = await this.#deps.states.groups.chain(nearest.group);
    return { ...this.#createGroup(chain, nearest.delta, names), resolvedFrom: distinct };
  }

  /**
   * Returns the state that consists of these events, as a remote server supplied it.
   * @param head the new group is stored as a change of its current state
   * @throws MissingEvents
   */
  async ofEventIds(head: WritableHead, eventIds: readonly string[]): Promise<GroupState> {
    const { events } = this.#deps;
    const eventsById = await events.getManyById(eventIds);
    const missing = eventIds.filter((eventId) => !eventsById.has(eventId));
    if (missing.length > 0) throw new MissingEvents(missing);
    return this.ofState(head, await this.acceptedState(head, eventsById.values()));
  }

  /**
   * Returns the state that consists of these events. For each rejected event, the state has the accepted event that
   * the rejected event would have replaced, if that event is known: a rejected event does not change the state. Leaves
   * out events of other rooms and events without a state key.
   * Source: server-server API, "Rejection".
   */
  async acceptedState(head: WritableHead, events: Iterable<StoredEvent>): Promise<Map<string, StoredEvent>> {
    const { slices } = this.#deps;
    const state = new Map<string, StoredEvent>();
    const rejected = new Map<string, StoredEvent>();
    await slices.each(events, (stored) => {
      const { type, stateKey } = stored.event;
      if (stateKey === undefined || stored.roomNid !== head.roomNid) return;
      (stored.rejected ? rejected : state).set(stateMapKey(type, stateKey), stored);
    });
    for (const [key, stored] of rejected) {
      const replaced = state.has(key) ? undefined : await this.#replaced(head, stored, key);
      if (replaced) state.set(key, replaced);
    }
    return state;
  }

  /**
   * Returns the accepted event with the same state key that a rejected event would have replaced: from the state before
   * it, or from its auth events, or else from the current state.
   */
  async #replaced(head: WritableHead, rejected: StoredEvent, key: string): Promise<StoredEvent | undefined> {
    const { events } = this.#deps;
    let stored: StoredEvent | undefined = rejected;
    for (let steps = 0; stored?.rejected && steps < maxRejectedInRow; steps++) {
      if (stored.stateBefore !== undefined) {
        stored = stored.replaces === undefined ? undefined : await events.get(stored.replaces);
        continue;
      }
      const auth = await events.getManyById(stored.event.authEventIds);
      stored = [...auth.values()].find(
        ({ event: { type, stateKey } }) => stateKey !== undefined && stateMapKey(type, stateKey) === key,
      );
    }
    if (stored && !stored.rejected) return stored;
    const entry = head.state.get(key);
    return entry && (await events.get(entry.nid));
  }

  /**
   * Returns the state before an event, as a remote server supplied it. Several supplied states are resolved into one.
   * @param head the new groups are stored as changes of its current state
   * @param knownGroups the state groups after the previous events that are stored
   * @throws MissingEvents
   */
  async supplied(
    head: WritableHead,
    { stateBefore, statesAfterPrev = [] }: SuppliedState,
    knownGroups: readonly number[] = [],
  ): Promise<GroupState> {
    if (stateBefore !== undefined) return this.ofEventIds(head, stateBefore);
    const supplied: GroupState[] = [];
    try {
      for (const stateAfterPrev of statesAfterPrev)
        supplied.push(await this.#stateAfter(head, stateAfterPrev));
      const [first] = supplied;
      if (first && supplied.length === 1 && knownGroups.length === 0) return first;
      const groups = [...knownGroups, ...supplied.map(({ id }) => id)];
      const resolved = await this.afterGroups(head.version, groups, head);
      const states = [...supplied, resolved];
      return {
        ...resolved,
        newGroups: states.flatMap(({ newGroups }) => newGroups),
        newGroupKeys: states.flatMap(({ newGroupKeys }) => newGroupKeys),
      };
    } catch (error) {
      this.drop(supplied.flatMap(({ newGroups }) => newGroups));
      throw error;
    }
  }

  /** Computes the state after an event from the state before the event, which a remote server supplied. */
  async #stateAfter(head: WritableHead, { eventId, before }: StateAfterEvent): Promise<GroupState> {
    const eventsById = await this.#deps.events.getManyById([...before, eventId]);
    const missing = before.filter((id) => !eventsById.has(id));
    if (missing.length > 0) throw new MissingEvents(missing);
    const changingEvent = eventsById.get(eventId);
    eventsById.delete(eventId);
    const state = await this.acceptedState(head, eventsById.values());
    const { type, stateKey } = changingEvent?.event ?? {};
    const changes =
      changingEvent?.roomNid === head.roomNid &&
      !changingEvent.rejected &&
      type !== undefined &&
      stateKey !== undefined;
    if (changes) state.set(stateMapKey(type, stateKey), changingEvent);
    return this.ofState(head, state);
  }

  /**
   * Returns the state that consists of these events, by `stateMapKey`; none may be rejected. Yields to other work in
   * between; if the current state changes meanwhile, the new group is stored as a change of the newest current state.
   */
  async ofState(head: WritableHead, state: ReadonlyMap<string, StoredEvent>): Promise<ReceivedState> {
    const { slices } = this.#deps;
    const keyNids = new Map<string, number>();
    for (;;) {
      await this.#addKeys(keyNids, head, state);
      const stateMark = head.stateMark;
      const delta = new Map<string, number>();
      await slices.each(state, ([key, { nid }]) => {
        if (head.state.get(key)?.nid !== nid) delta.set(key, nid);
      });
      await slices.each(head.state.keys(), (key) => {
        if (!state.has(key)) delta.set(key, 0);
      });
      const isSmall = delta.size <= state.size;
      // The whole state in a new chain is smaller than a delta that removes most entries.
      const changes = isSmall ? delta : new Map(state.entries().map(([key, { nid }]) => [key, nid]));
      const changesByKeyNid = new Map<number, number>();
      await slices.each(changes, ([key, nid]) => {
        const keyNid = keyNids.get(key);
        if (keyNid !== undefined) changesByKeyNid.set(keyNid, nid);
      });
      if (!head.isUnchanged(stateMark)) continue;
      if (changesByKeyNid.size < changes.size) throw new Error('a state key has no nid');
      if (delta.size === 0 && head.chain.id !== undefined)
        return { ...this.#existingGroup(head.chain.id, head), keyNids };
      const chain = isSmall ? head.chain.fork() : new GroupChain();
      return { ...this.#createGroup(chain, changesByKeyNid, [...changes.keys()]), keyNids };
    }
  }

  /**
   * Adds the state key nids of a state's entries, and of the entries of the current state.
   * @throws Error when a state key has characters that no database stores; events with such keys are rejected, so no
   * state has any
   */
  async #addKeys(
    keyNids: Map<string, number>,
    head: WritableHead,
    state: ReadonlyMap<string, unknown>,
  ): Promise<void> {
    const { slices } = this.#deps;
    const { stateKeys } = this.#deps.states;
    for (;;) {
      const missing = new Set<string>();
      for (const keys of [state.keys(), head.state.keys()]) {
        await slices.each(keys, (key) => {
          if (!keyNids.has(key)) missing.add(key);
        });
      }
      if (missing.size === 0) return;
      // Entries may be added to the current state during this look-up.
      const nids = await stateKeys.prepareMany(missing);
      if (nids.size < missing.size) throw new Error('a state key cannot be stored');
      for (const [key, nid] of nids) keyNids.set(key, nid);
    }
  }

  /** Forgets new groups that will not be written. */
  drop(unwritten: Iterable<GroupRows>): void {
    for (const rows of unwritten) this.#deps.states.groups.settled(rows);
  }

  #createGroup(chain: GroupChain, delta: ReadonlyMap<number, number>, keys: readonly string[]): GroupState {
    const rows = chain.advance(this.#deps.states.groupIds.next(), delta);
    this.#deps.states.groups.add(rows);
    return {
      id: rows.id,
      chain: async () => chain.fork(),
      newGroups: [rows],
      newGroupKeys: keys,
      resolvedFrom: [],
    };
  }

  #existingGroup(id: number, head: WritableHead | undefined): GroupState {
    const chain = async () =>
      head?.chain.id === id ? head.chain.fork() : await this.#deps.states.groups.chain(id);
    return { id, chain, newGroups: [], newGroupKeys: [], resolvedFrom: [] };
  }
}

/** The distinct state groups of a room's forward extremities. */
export function extremityGroups(head: Pick<WritableHead, 'extremities'>): number[] {
  return [...new Set(head.extremities.map(({ stateGroup }) => stateGroup ?? 0))];
}

function sameGroups(a: readonly number[], b: readonly number[]): boolean {
  const set = new Set(b);
  return a.length === set.size && a.every((group) => set.has(group));
}
