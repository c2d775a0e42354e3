import { type RoomVersion, stateKeyOf } from '../../protocol/index.ts';
import { GroupChain, type GroupRows } from '../state/group-chain.ts';
import type { StoredEvent } from '../stored-event.ts';
import type { RoomHead } from '../timeline/room-head.ts';
import { MissingEvents } from './missing-events.ts';
import type { PlacementParts } from './placement-parts.ts';

type Parts = Pick<PlacementParts, 'events' | 'groups' | 'stateKeys' | 'groupIds' | 'resolver'>;

/** A state to build on, and the groups that have to be written for it. */
export interface GroupState {
  readonly id: number;
  /** Ends in the group. */
  readonly chain: () => Promise<GroupChain>;
  readonly made: readonly GroupRows[];
  /** `stateKeyOf` of the entries in `made`. */
  readonly keys: readonly string[];
  /** The groups whose resolution it is. */
  readonly resolves: readonly number[];
}

/**
 * Finds or makes the state groups before events. Those that are made can be read at once; whoever does not write them
 * drops them again.
 */
export class BeforeStates {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** The state before an event that comes after events with these groups. */
  async after(
    version: RoomVersion,
    groups: readonly number[],
    head: RoomHead | undefined,
  ): Promise<GroupState> {
    const { resolver } = this.#parts;
    const [only = 0, ...others] = new Set(groups);
    if (others.length === 0) return this.#existing(only, head);
    const distinct = [only, ...others];
    const atEnd = head && sameGroups(distinct, groupsOf(head)) ? head.chain.id : undefined;
    const known = atEnd ?? resolver.known(distinct);
    if (known !== undefined) return this.#existing(known, head);
    const resolution = await resolver.resolve(version, distinct);
    const changes = distinct.map((group) => ({ group, delta: resolution.changesFrom(group) }));
    const [nearest] = changes.sort((a, b) => a.delta.size - b.delta.size);
    if (!nearest) throw new Error('nothing was resolved');
    if (nearest.delta.size === 0) {
      resolver.remember(distinct, nearest.group);
      return this.#existing(nearest.group, head);
    }
    const names = await this.#parts.stateKeys.names([...nearest.delta.keys()]);
    const chain = await this.#parts.groups.chain(nearest.group);
    return { ...this.#make(chain, nearest.delta, names), resolves: distinct };
  }

  /**
   * A state that another server has told of.
   * @param head whose current state it is written down as a change of
   */
  async of(head: RoomHead, eventIds: readonly string[]): Promise<GroupState> {
    const { events } = this.#parts;
    const found = await events.getManyById(eventIds);
    const missing = eventIds.filter((eventId) => !found.has(eventId));
    if (missing.length > 0) throw new MissingEvents(missing);
    const state = stateMapOf(found.values(), head.roomNid);
    return this.ofMap(head, state, await this.keysOf(head, state));
  }

  /** The numbers of the entries of a state, and of those that the current state has besides. */
  async keysOf(head: RoomHead, state: ReadonlyMap<string, unknown>): Promise<Map<string, number>> {
    const { stateKeys } = this.#parts;
    for (const nids = new Map<string, number>(); ; ) {
      const missing = new Set<string>();
      for (const keys of [state.keys(), head.state.keys()]) {
        for (const key of keys) if (!nids.has(key)) missing.add(key);
      }
      if (missing.size === 0) return nids;
      // While they are looked up the current state may get others.
      for (const [key, nid] of await stateKeys.prepareMany(missing)) nids.set(key, nid);
    }
  }

  /** The same with the numbers that `keysOf` has found just now; does not wait, so the head stays as it is. */
  ofMap(
    head: RoomHead,
    state: ReadonlyMap<string, StoredEvent>,
    keyNids: ReadonlyMap<string, number>,
  ): GroupState {
    const delta = new Map<number, number>();
    const names: string[] = [];
    const note = (key: string, nid: number) => {
      const keyNid = keyNids.get(key);
      if (keyNid === undefined) throw new Error('a state key was not prepared');
      delta.set(keyNid, nid);
      names.push(key);
    };
    for (const [key, stored] of state) if (head.state.get(key)?.nid !== stored.nid) note(key, stored.nid);
    for (const key of head.state.keys()) if (!state.has(key)) note(key, 0);
    if (delta.size === 0 && head.chain.id !== undefined) return this.#existing(head.chain.id, head);
    if (delta.size <= state.size) return this.#make(head.chain.fork(), delta, names);
    // A line of history of its own costs less than saying of everything that it is not there.
    const whole = new Map([...state].map(([key, { nid }]) => [keyNids.get(key) ?? 0, nid]));
    return this.#make(new GroupChain(), whole, [...state.keys()]);
  }

  /** Groups that will not be written after all. */
  drop(made: Iterable<GroupRows>): void {
    for (const rows of made) this.#parts.groups.settled(rows);
  }

  #make(chain: GroupChain, delta: ReadonlyMap<number, number>, keys: readonly string[]): GroupState {
    const rows = chain.advance(this.#parts.groupIds.next(), delta);
    this.#parts.groups.add(rows);
    return { id: rows.id, chain: async () => chain.fork(), made: [rows], keys, resolves: [] };
  }

  #existing(id: number, head: RoomHead | undefined): GroupState {
    const chain = async () =>
      head?.chain.id === id ? head.chain.fork() : await this.#parts.groups.chain(id);
    return { id, chain, made: [], keys: [], resolves: [] };
  }
}

/** The state that consists of these events; rejected ones and such of other rooms have no part in it. */
export function stateMapOf(events: Iterable<StoredEvent>, roomNid: number): Map<string, StoredEvent> {
  const state = new Map<string, StoredEvent>();
  for (const stored of events) {
    const { type, stateKey } = stored.event;
    if (stateKey === undefined || stored.rejected || stored.roomNid !== roomNid) continue;
    state.set(stateKeyOf(type, stateKey), stored);
  }
  return state;
}

/** The distinct groups of a room's forward extremities. */
export function groupsOf(head: Pick<RoomHead, 'extremities'>): number[] {
  return [...new Set(head.extremities.map(({ stateGroup }) => stateGroup ?? 0))];
}

function sameGroups(one: readonly number[], other: readonly number[]): boolean {
  const set = new Set(other);
  return one.length === set.size && one.every((group) => set.has(group));
}
