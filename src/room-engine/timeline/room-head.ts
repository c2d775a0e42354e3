import { type Membership, membershipOf, type RoomVersion, stateMapKey } from '../../protocol/index.ts';
import type { PartialState } from '../placement/entering/partial-state.ts';
import type { GroupChain } from '../state/group-chain.ts';
import type { MembershipChange, StateChange, StoredEvent } from '../stored-event.ts';
import { type HeadState, type StateEntry, stateEntry } from './head-state.ts';

export type { StateEntry } from './head-state.ts';

/** An event that nothing refers to yet. */
export interface Extremity {
  readonly nid: number;
  readonly eventId: string;
  readonly depth: number;
  /** State group after it. */
  readonly stateGroup: number | undefined;
}

/** How many recent events of an active room stay with its head, so that sync need not ask the database. */
const recentEvents = 64;

/**
 * The end of an active room's history, in memory: what the next event is built on. It runs ahead of the disk: events
 * that are being committed are part of it already. When a commit fails the head is `broken` and must be loaded anew.
 */
export class RoomHead {
  readonly roomNid: number;
  readonly roomId: string;
  /** Ends in the group of the current state. */
  chain: GroupChain;
  broken = false;
  /** Set while the state of a room that was joined the fast way is not complete. */
  partial: PartialState | undefined;
  /** Where on the stream the state became complete without an event that said so; 0 where that never happened. */
  completedAt: number;
  /** Numbers of events that nothing leads to since the room was entered again, see `rooms.loose_ends`; newest last. */
  looseEnds: readonly number[];
  #extremities: readonly Extremity[];
  #state: HeadState;
  readonly #recent: StoredEvent[] = [];
  #changedAt = 0;
  #version: RoomVersion;

  constructor(parts: {
    roomNid: number;
    roomId: string;
    version: RoomVersion;
    chain: GroupChain;
    extremities: readonly Extremity[];
    state: HeadState;
    /** Where on the stream the newest of its entries became what it is. */
    changedAt?: number;
    partial?: PartialState | undefined;
    completedAt?: number;
    looseEnds?: readonly number[];
  }) {
    this.roomNid = parts.roomNid;
    this.roomId = parts.roomId;
    this.#version = parts.version;
    this.chain = parts.chain;
    this.#extremities = parts.extremities;
    this.#state = parts.state;
    this.partial = parts.partial;
    this.completedAt = parts.completedAt ?? 0;
    this.looseEnds = parts.looseEnds ?? [];
    this.#changedAt = parts.changedAt ?? 0;
  }

  /** What the room is, once this server has been in it; before, what somebody has said of it: nobody may rely on that. */
  get version(): RoomVersion {
    return this.#version;
  }

  /** Whether this server is, or was, in the room, and so knows that it is one, and of which version. */
  get isEntered(): boolean {
    return this.chain.id !== undefined;
  }

  /** The room turns out to be of another version than somebody has said who was never believed. */
  correctVersion(version: RoomVersion): void {
    if (this.isEntered) throw new Error('the version of a room does not change');
    this.#version = version;
  }

  /** Whether members may be missing in the state. */
  get isPartial(): boolean {
    return this.partial !== undefined;
  }

  get extremities(): readonly Extremity[] {
    return this.#extremities;
  }

  /** The current state: `stateMapKey(type, stateKey)` to its entry. */
  get state(): ReadonlyMap<string, StateEntry> {
    return this.#state.entries;
  }

  /** Another object, or another number, when the current state is not the same any more. */
  get stateMark(): { readonly state: object; readonly changes: number } {
    return { state: this.#state, changes: this.#state.changes };
  }

  /** Whether the current state is what it was when `mark` was taken. */
  isUnchanged({ state, changes }: RoomHead['stateMark']): boolean {
    return this.#state === state && this.#state.changes === changes;
  }

  /** The entry of the current state; `undefined` where there is none. */
  entry(type: string, stateKey: string): StateEntry | undefined {
    return this.#state.entries.get(stateMapKey(type, stateKey));
  }

  /** `undefined` when the user never had anything to do with the room. */
  membership(userId: string): Membership | undefined {
    return this.#state.members.get(userId);
  }

  /** Where on the stream the newest entry of the current state became what it is. */
  get changedAt(): number {
    return this.#changedAt;
  }

  /** Users with a membership event and their membership. */
  get members(): ReadonlyMap<string, Membership> {
    return this.#state.members;
  }

  /** How many users have this membership. */
  memberCount(membership: Membership): number {
    return this.#state.memberCount(membership);
  }

  /** How many users of each server are joined; 0 where all that is known is that some are. */
  get servers(): ReadonlyMap<string, number> {
    const { servers } = this.#state;
    if (!this.partial) return servers;
    return new Map([...this.partial.servers.map((name): [string, number] => [name, 0]), ...servers]);
  }

  /** The newest events of the timeline that this process has seen, oldest first. */
  get recent(): readonly StoredEvent[] {
    return this.#recent;
  }

  /** Makes `stored` the newest event. @returns what it did to the current state. */
  append(stored: StoredEvent, extremities: readonly Extremity[]): StateChange[] {
    this.#extremities = extremities;
    this.remember(stored);
    const { type, stateKey } = stored.event;
    return stateKey === undefined ? [] : [this.setEntry(type, stateKey, stored, stored.stream ?? 0)];
  }

  /** Replaces the forward extremities. */
  setExtremities(extremities: readonly Extremity[]): void {
    this.#extremities = extremities;
  }

  /** Takes the newest event of the timeline. */
  remember(stored: StoredEvent): void {
    this.#recent.push(stored);
    if (this.#recent.length > recentEvents * 2) this.#recent.splice(0, recentEvents);
  }

  /** Replaces the copy of an event of which something is known better now. */
  revise(stored: StoredEvent): void {
    const index = this.#recent.findIndex(({ nid }) => nid === stored.nid);
    if (index < 0) return;
    if (stored.stream === undefined) this.#recent.splice(index, 1);
    else this.#recent[index] = stored;
  }

  /** Marks an event of the room as redacted; `recent` may hold it in another copy than the caller has. */
  redact(target: StoredEvent, by: number | undefined): void {
    target.redactedBy = by;
    for (const stored of this.#recent) if (stored.nid === target.nid) stored.redactedBy = by;
  }

  /** Replaces one entry of the current state. */
  setEntry(type: string, stateKey: string, stored: StoredEvent | undefined, position: number): StateChange {
    const previous = this.#state.set(stateMapKey(type, stateKey), stored && stateEntry(stored, position));
    this.#changedAt = Math.max(this.#changedAt, position);
    return { type, stateKey, event: stored, previousNid: previous?.nid, keyNid: undefined };
  }

  /** Replaces the whole current state by one that was made beside it. */
  replaceState(state: HeadState, position: number): void {
    this.#state = state;
    this.#changedAt = Math.max(this.#changedAt, position);
  }
}

/**
 * The memberships that changes of state change.
 * @param cause the event that made them
 * @param before the membership of a user before them
 */
export function membershipChanges(
  changes: readonly StateChange[],
  cause: StoredEvent,
  before: (userId: string) => Membership | undefined,
): MembershipChange[] {
  return changes
    .filter((change) => change.type === 'm.room.member')
    .map(({ stateKey, event }) => ({
      userId: stateKey,
      from: before(stateKey),
      to: event ? membershipOf(event.event.content) : 'leave',
      eventNid: (event ?? cause).nid,
    }));
}
