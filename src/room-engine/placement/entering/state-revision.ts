import { type RoomEvent, stateMapKey } from '../../../protocol/index.ts';
import type { GroupChain, GroupRows } from '../../state/group-chain.ts';
import type { StoredEvent } from '../../stored-event.ts';
import type { Extremity } from '../../timeline/extremity.ts';
import type { WritableHead } from '../../timeline/writable-head.ts';
import { rejectionByState } from '../events/event-authorization.ts';
import { MissingEvents } from '../missing-events.ts';
import type { SuppliedState } from '../placement.ts';
import type { PlacementDeps } from '../placement-deps.ts';
import {
  type AuthState,
  authIdsOf,
  authStateInGroup,
  withMembersFromAuthEvents,
} from '../states/auth-state.ts';
import type { BeforeStates, GroupState } from '../states/before-state.ts';
import { readPlacedSince } from '../store.ts';

/** The join where a revision begins, and the state before it. */
interface RevisionStart {
  readonly join: StoredEvent;
  readonly before: GroupState;
  /** Position of the join on the stream. */
  readonly position: number;
  readonly chain: GroupChain;
  /** Whether the state before the join lacks events whose keys could not be fetched. */
  readonly lacksKeys: boolean;
}

/** Maximum number of events that one query reads. */
const readAtOnce = 100;

/**
 * Revises the events of a room since the join: computes the states before and after each event again, from the whole
 * state before the join. Writes nothing.
 */
export class StateRevision {
  readonly #deps: PlacementDeps;
  readonly #beforeStates: BeforeStates;
  readonly #head: WritableHead;
  /** Revised copies of the events, by nid, in the order in which the events were placed. */
  readonly events = new Map<number, StoredEvent>();
  /** The state groups that the revision has created. */
  readonly groups: GroupRows[];
  /** `stateMapKey` of the entries in `groups`. */
  readonly stateKeys: Set<string>;
  readonly join: StoredEvent;
  /** The state before the join. */
  readonly before: GroupState;
  readonly #lacksKeys: boolean;
  #upTo: number;
  /** The chain that ends in the newest group, because the next group mostly follows it. */
  #chain: GroupChain | undefined;

  private constructor(
    deps: PlacementDeps,
    states: BeforeStates,
    head: WritableHead,
    { join, before, position, chain, lacksKeys }: RevisionStart,
  ) {
    this.#deps = deps;
    this.#beforeStates = states;
    this.#head = head;
    this.groups = [...before.newGroups];
    this.stateKeys = new Set(before.newGroupKeys);
    this.join = join;
    this.before = before;
    this.#lacksKeys = lacksKeys;
    this.#upTo = position - 1;
    this.#chain = chain;
  }

  /**
   * Revises the join and all events since that are on disk.
   * @param state the whole state before the join
   * @param lacksKeys whether `state` lacks events whose keys could not be fetched. Then memberships that are missing in
   * the state before an event are taken from its auth events, as in every partial state
   * @throws MissingEvents
   */
  static async begin(
    deps: PlacementDeps,
    states: BeforeStates,
    head: WritableHead,
    joinEventId: string,
    state: SuppliedState,
    lacksKeys: boolean,
  ): Promise<StateRevision> {
    const join = await deps.events.getById(joinEventId);
    if (join?.stream === undefined) throw new MissingEvents([joinEventId]);
    const before = await states.supplied(head, state);
    const chain = await before.chain();
    const start = { join, before, position: join.stream, chain, lacksKeys };
    const revision = new StateRevision(deps, states, head, start);
    await deps.slices.pauseIfDue();
    await revision.catchUp();
    return revision;
  }

  /** Events up to this position on the stream are revised. */
  get upTo(): number {
    return this.#upTo;
  }

  /** Revises the events that have reached the disk since the last call. */
  async catchUp(): Promise<void> {
    const { events, database, streams, slices } = this.#deps;
    // Events up to this position are on disk. Newer events are in memory; when there are too many of them for
    // memory, the caller calls `catchUp` again.
    const upTo = streams.current;
    const nids = await readPlacedSince(database.scanner(), this.#head.roomNid, this.#upTo);
    for (let start = 0; start < nids.length; start += readAtOnce) {
      const chunk = nids.slice(start, start + readAtOnce);
      const placed = await events.getMany(chunk);
      for (const nid of chunk) {
        const stored = placed.get(nid);
        if (stored && (stored.stream ?? 0) <= upTo) await this.revise(stored);
        await slices.pauseIfDue();
      }
    }
    await new Promise(setImmediate);
    this.#upTo = Math.max(this.#upTo, upTo);
  }

  /** Computes the states before and after an event again, and whether the state before the event allows the event. */
  async revise(stored: StoredEvent): Promise<void> {
    const { event } = stored;
    const isJoin = stored.nid === this.join.nid;
    this.#upTo = Math.max(this.#upTo, stored.stream ?? 0);
    const before = isJoin ? this.before : await this.#stateBefore(stored);
    if (!before) return;
    if (!isJoin) {
      this.groups.push(...before.newGroups);
      for (const key of before.newGroupKeys) this.stateKeys.add(key);
    }
    const authState = await this.#authState(event, before.id);
    const rejected = stored.rejected || (!isJoin && rejectionByState(event, authState) !== undefined);
    const replaced =
      event.stateKey === undefined ? undefined : authState.get(stateMapKey(event.type, event.stateKey));
    let group = before.id;
    if (event.stateKey !== undefined && !rejected) {
      const key = stateMapKey(event.type, event.stateKey);
      const keyNid = await this.#deps.states.stateKeys.prepare(key);
      const chain = this.#chain?.id === before.id ? this.#chain : await before.chain();
      this.#chain = chain;
      const rows = chain.advance(this.#deps.states.groupIds.next(), new Map([[keyNid, stored.nid]]));
      this.#deps.states.groups.add(rows);
      this.groups.push(rows);
      this.stateKeys.add(key);
      group = rows.id;
    }
    this.events.set(stored.nid, {
      ...stored,
      stateBefore: before.id,
      stateGroup: group,
      replaces: replaced?.nid,
      rejected,
      stream: rejected ? undefined : stored.stream,
    });
  }

  async #authState(event: RoomEvent, group: number): Promise<AuthState> {
    const authState = await authStateInGroup(this.#deps, event, group);
    if (!this.#lacksKeys) return authState;
    const authById = await this.#deps.events.getManyById(authIdsOf(event));
    return withMembersFromAuthEvents(authState, authById.values());
  }

  /**
   * Returns the state before an event from its revised previous events; `undefined` where a remote server
   * supplied that state, or where the event does not follow the join.
   */
  async #stateBefore({ event, followsGap }: StoredEvent): Promise<GroupState | undefined> {
    const prev = await this.#deps.events.getManyById(event.prevEventIds);
    if (followsGap || prev.size < event.prevEventIds.length) return undefined;
    if (![...prev.values()].some(({ nid }) => this.events.has(nid))) return undefined;
    const groups = [...prev.values()].map((event) => (this.events.get(event.nid) ?? event).stateGroup);
    const knownGroups = groups.filter((group) => group !== undefined);
    if (knownGroups.length < groups.length) return undefined;
    const before = await this.#beforeStates.afterGroups(this.#head.version, knownGroups, undefined);
    if (before.resolvedFrom.length > 0) this.#deps.states.resolver.remember(before.resolvedFrom, before.id);
    return before;
  }

  /**
   * Returns the forward extremities with their revised groups. A rejected or soft-failed extremity is replaced by its
   * previous events.
   */
  async extremities(): Promise<Extremity[]> {
    const extremities = new Map<number, Extremity>();
    const pending = this.#head.extremities.map(({ nid }) => nid);
    const seen = new Set<number>();
    for (let nid = pending.pop(); nid !== undefined; nid = pending.pop()) {
      if (seen.has(nid)) continue;
      seen.add(nid);
      const stored = this.events.get(nid) ?? (await this.#deps.events.get(nid));
      if (!stored) continue;
      if (stored.rejected || stored.softFailed) {
        const prev = await this.#deps.events.getManyById(stored.event.prevEventIds);
        pending.push(...prev.values().map((event) => event.nid));
      } else {
        const { eventId, depth } = stored.event;
        extremities.set(nid, { nid, eventId, depth, stateGroup: stored.stateGroup });
      }
    }
    // An event that another extremity names as a previous event is not an extremity.
    const prevEventIds = new Set<string>();
    for (const nid of extremities.keys()) {
      const stored = this.events.get(nid) ?? (await this.#deps.events.get(nid));
      for (const eventId of stored?.event.prevEventIds ?? []) prevEventIds.add(eventId);
    }
    return [...extremities.values()].filter(({ eventId }) => !prevEventIds.has(eventId));
  }

  /** Copies redactions that took effect since the events were revised. Call it last, before the write is staged. */
  async copyRedactions(): Promise<void> {
    await this.#deps.slices.each(this.events.values(), (revised) => {
      revised.redactedBy = this.#deps.events.peek(revised.nid)?.redactedBy ?? revised.redactedBy;
    });
  }
}
