import {
  type Membership,
  membershipOf,
  type RoomVersion,
  serverOfUser,
  splitStateKey,
  stateKeyOf,
} from '../../protocol/index.ts';
import type { PartialState } from '../placement/partial-state.ts';
import type { GroupChain } from '../state/group-chain.ts';
import type { MembershipChange, StateChange, StoredEvent } from '../stored-event.ts';

/** One entry of the current state. */
export interface StateEntry {
  readonly nid: number;
  readonly eventId: string;
  /** For `m.room.member` entries. */
  readonly membership: Membership | undefined;
  /** Where on the stream the entry became what it is. */
  readonly stream: number;
}

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
  readonly version: RoomVersion;
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
  readonly #state: Map<string, StateEntry>;
  readonly #members = new Map<string, Membership>();
  readonly #counts = new Map<Membership, number>();
  readonly #servers = new Map<string, number>();
  readonly #recent: StoredEvent[] = [];
  #changedAt = 0;

  constructor(parts: {
    roomNid: number;
    roomId: string;
    version: RoomVersion;
    chain: GroupChain;
    extremities: readonly Extremity[];
    state: Map<string, StateEntry>;
    partial?: PartialState | undefined;
    completedAt?: number;
    looseEnds?: readonly number[];
  }) {
    this.roomNid = parts.roomNid;
    this.roomId = parts.roomId;
    this.version = parts.version;
    this.chain = parts.chain;
    this.#extremities = parts.extremities;
    this.#state = parts.state;
    this.partial = parts.partial;
    this.completedAt = parts.completedAt ?? 0;
    this.looseEnds = parts.looseEnds ?? [];
    for (const [key, entry] of parts.state) {
      this.#count(key, undefined, entry.membership);
      this.#changedAt = Math.max(this.#changedAt, entry.stream);
    }
  }

  /** Whether members may be missing in the state. */
  get isPartial(): boolean {
    return this.partial !== undefined;
  }

  get extremities(): readonly Extremity[] {
    return this.#extremities;
  }

  /** The current state: `stateKeyOf(type, stateKey)` to its entry. */
  get state(): ReadonlyMap<string, StateEntry> {
    return this.#state;
  }

  entry(type: string, stateKey: string): StateEntry | undefined {
    return this.#state.get(stateKeyOf(type, stateKey));
  }

  /** `undefined` when the user never had anything to do with the room. */
  membership(userId: string): Membership | undefined {
    return this.#members.get(userId);
  }

  /** Where on the stream the newest entry of the current state became what it is. */
  get changedAt(): number {
    return this.#changedAt;
  }

  /** Users with a membership event and their membership. */
  get members(): ReadonlyMap<string, Membership> {
    return this.#members;
  }

  memberCount(membership: Membership): number {
    return this.#counts.get(membership) ?? 0;
  }

  /** How many users of each server are joined; 0 where all that is known is that some are. */
  get servers(): ReadonlyMap<string, number> {
    if (!this.partial) return this.#servers;
    return new Map([...this.partial.servers.map((name): [string, number] => [name, 0]), ...this.#servers]);
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
    const key = stateKeyOf(type, stateKey);
    const previous = this.#state.get(key);
    const entry = stored && stateEntry(stored, position);
    if (entry) this.#state.set(key, entry);
    else this.#state.delete(key);
    this.#changedAt = Math.max(this.#changedAt, position);
    this.#count(key, previous?.membership, entry?.membership);
    return { type, stateKey, event: stored, previousNid: previous?.nid };
  }

  #countServer(userId: string, change: number): void {
    const server = serverOfUser(userId);
    const count = (this.#servers.get(server) ?? 0) + change;
    if (count > 0) this.#servers.set(server, count);
    else this.#servers.delete(server);
  }

  #count(key: string, from: Membership | undefined, to: Membership | undefined): void {
    if (from === undefined && to === undefined) return;
    const [, userId] = splitStateKey(key);
    if (from !== to) {
      if (from === 'join') this.#countServer(userId, -1);
      if (to === 'join') this.#countServer(userId, 1);
    }
    if (from) this.#counts.set(from, this.memberCount(from) - 1);
    if (to) {
      this.#counts.set(to, this.memberCount(to) + 1);
      this.#members.set(userId, to);
    } else this.#members.delete(userId);
  }
}

export function stateEntry(stored: StoredEvent, position: number): StateEntry {
  const { type, eventId, content } = stored.event;
  const membership = type === 'm.room.member' ? membershipOf(content) : undefined;
  return { nid: stored.nid, eventId, membership, stream: position };
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
