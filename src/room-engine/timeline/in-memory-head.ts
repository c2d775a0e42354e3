import { type Membership, type RoomVersion, stateMapKey } from '../../protocol/index.ts';
import type { FormerPartialState, PartialState } from '../partial-state.ts';
import type { StoredEvent } from '../stored-event.ts';
import { sizeOfEvent } from './event-size.ts';
import type { Extremity } from './extremity.ts';
import type { HeadState, StateEntry } from './head-state.ts';
import type { RoomHead, StateMark } from './room-head.ts';

/**
 * When the head of an active room has more than twice this number of recent events, it keeps this number of the newest
 * ones, so that a sync needs no query.
 */
const keptRecent = 64;

/** When the recent events have more than this number of bytes (estimated), the older half of them is dropped. */
const maxRecentBytes = 1024 * 1024;

export interface InMemoryHeadFields {
  readonly roomNid: number;
  readonly roomId: string;
  readonly version: RoomVersion;
  readonly extremities: readonly Extremity[];
  readonly state: HeadState;
  /** Position on the stream at which the newest entry of the current state was set. */
  readonly changedAt?: number;
  readonly partial?: PartialState | undefined;
  readonly completedAt?: number;
  readonly formerPartial?: FormerPartialState | undefined;
  readonly formerExtremities?: readonly number[];
}

/** The common part of `WritableHead` (main process) and `FollowedHead` (other processes). */
export abstract class InMemoryHead implements RoomHead {
  readonly roomNid: number;
  readonly roomId: string;
  partial: PartialState | undefined;
  completedAt: number;
  formerPartial: FormerPartialState | undefined;
  formerExtremities: readonly number[];
  protected currentVersion: RoomVersion;
  protected currentState: HeadState;
  protected newestChange: number;
  protected currentExtremities: readonly Extremity[];
  readonly #recent: StoredEvent[] = [];
  #recentBytes = 0;
  /** The greatest depth of the forward extremities when the head was loaded, and of the events since then. */
  #topDepth = 0;
  #lateAt = 0;

  constructor(fields: InMemoryHeadFields) {
    this.roomNid = fields.roomNid;
    this.roomId = fields.roomId;
    this.currentVersion = fields.version;
    this.currentExtremities = fields.extremities;
    for (const { depth } of fields.extremities) this.#topDepth = Math.max(this.#topDepth, depth);
    this.currentState = fields.state;
    this.newestChange = fields.changedAt ?? 0;
    this.partial = fields.partial;
    this.completedAt = fields.completedAt ?? 0;
    this.formerPartial = fields.formerPartial;
    this.formerExtremities = fields.formerExtremities ?? [];
  }

  abstract get stateGroup(): number | undefined;

  get version(): RoomVersion {
    return this.currentVersion;
  }

  get isEntered(): boolean {
    return this.stateGroup !== undefined;
  }

  get isPartial(): boolean {
    return this.partial !== undefined;
  }

  get lacksMembers(): boolean {
    return this.partial !== undefined && this.partial.membersAt === undefined;
  }

  get extremities(): readonly Extremity[] {
    return this.currentExtremities;
  }

  get state(): ReadonlyMap<string, StateEntry> {
    return this.currentState.entries;
  }

  get stateMark(): StateMark {
    return { state: this.currentState, changes: this.currentState.changes };
  }

  isUnchanged({ state, changes }: StateMark): boolean {
    return this.currentState === state && this.currentState.changes === changes;
  }

  entry(type: string, stateKey: string): StateEntry | undefined {
    return this.currentState.entries.get(stateMapKey(type, stateKey));
  }

  membership(userId: string): Membership | undefined {
    return this.currentState.members.get(userId);
  }

  get changedAt(): number {
    return this.newestChange;
  }

  get members(): ReadonlyMap<string, Membership> {
    return this.currentState.members;
  }

  memberCount(membership: Membership): number {
    return this.currentState.memberCount(membership);
  }

  get servers(): ReadonlyMap<string, number> {
    const { servers } = this.currentState;
    if (!this.partial) return servers;
    return new Map([...this.partial.servers.map((name): [string, number] => [name, 0]), ...servers]);
  }

  get recent(): readonly StoredEvent[] {
    return this.#recent;
  }

  get lateAt(): number {
    return this.#lateAt;
  }

  /** Adds the newest event of the timeline to `recent`. */
  remember(stored: StoredEvent): void {
    this.#recent.push(stored);
    if (stored.event.depth < this.#topDepth) this.#lateAt = stored.stream ?? 0;
    else this.#topDepth = stored.event.depth;
    this.#recentBytes += sizeOfEvent(stored);
    if (this.#recent.length > keptRecent * 2) this.#dropRecent(keptRecent);
    else if (this.#recentBytes > maxRecentBytes) this.#dropRecent(Math.floor(this.#recent.length / 2));
  }

  /** Estimated bytes of `recent`. */
  get recentBytes(): number {
    return this.#recentBytes;
  }

  /** Replaces an event in `recent` by its revised copy; removes it when the copy has no position on the timeline. */
  revise(stored: StoredEvent): void {
    const index = this.#recent.findIndex(({ nid }) => nid === stored.nid);
    const replaced = this.#recent[index];
    if (!replaced) return;
    this.#recentBytes -= sizeOfEvent(replaced);
    if (stored.stream === undefined) this.#recent.splice(index, 1);
    else {
      this.#recent[index] = stored;
      this.#recentBytes += sizeOfEvent(stored);
    }
  }

  /** Drops deleted events from `recent`. */
  forgetEvents(nids: ReadonlySet<number>): void {
    for (let index = this.#recent.length; index-- > 0; ) {
      if (nids.has(this.#recent[index]!.nid)) this.#recent.splice(index, 1);
    }
    this.#measureRecent();
  }

  /** Marks the copies of an event in `recent` as redacted, or, with `undefined`, as not redacted. */
  markRedacted(nid: number, by: number | undefined): void {
    for (const stored of this.#recent) if (stored.nid === nid) stored.redactedBy = by;
  }

  #dropRecent(count: number): void {
    this.#recent.splice(0, count);
    this.#measureRecent();
  }

  #measureRecent(): void {
    this.#recentBytes = this.#recent.reduce((sum, stored) => sum + sizeOfEvent(stored), 0);
  }
}
