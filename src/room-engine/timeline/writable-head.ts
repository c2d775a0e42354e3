import { type RoomVersion, stateMapKey } from '../../protocol/index.ts';
import type { GroupChain } from '../state/group-chain.ts';
import type { StateChange, StoredEvent } from '../stored-event.ts';
import type { Extremity } from './extremity.ts';
import { type HeadState, stateEntry } from './head-state.ts';
import { InMemoryHead, type InMemoryHeadFields } from './in-memory-head.ts';

/**
 * The head of a room: the next event of the room is built on it. It is ahead of the disk: it contains events that are
 * being committed. When a commit fails the head is `broken` and must be loaded again.
 */
export class WritableHead extends InMemoryHead {
  /** The chain whose newest state group is the current state. */
  chain: GroupChain;
  /** Whether an event could not be written, so that the head must be loaded again. */
  broken = false;

  constructor(fields: InMemoryHeadFields & { readonly chain: GroupChain }) {
    super(fields);
    this.chain = fields.chain;
  }

  get stateGroup(): number | undefined {
    return this.chain.id;
  }

  /** Replaces the unverified room version of an invite. */
  correctVersion(version: RoomVersion): void {
    if (this.isEntered) throw new Error('the version of a room that this server has entered cannot change');
    this.currentVersion = version;
  }

  /** Adds the newest event of the timeline. @returns the change of the current state by this event */
  append(stored: StoredEvent, extremities: readonly Extremity[]): StateChange[] {
    this.currentExtremities = extremities;
    this.remember(stored);
    const { type, stateKey } = stored.event;
    return stateKey === undefined ? [] : [this.setEntry(type, stateKey, stored, stored.stream ?? 0)];
  }

  /** Replaces the forward extremities. */
  setExtremities(extremities: readonly Extremity[]): void {
    this.currentExtremities = extremities;
  }

  /**
   * Marks an event of the room as redacted. Also marks its copy in `recent`, because that may be a different object.
   * @param by nid of the redaction; `undefined` undoes the mark
   */
  redact(target: StoredEvent, by: number | undefined): void {
    target.redactedBy = by;
    this.markRedacted(target.nid, by);
  }

  /** Sets an entry of the current state, or removes it where `stored` is `undefined`. */
  setEntry(type: string, stateKey: string, stored: StoredEvent | undefined, position: number): StateChange {
    const entry = stored && stateEntry(stored, position);
    const previous = this.currentState.set(stateMapKey(type, stateKey), entry);
    this.newestChange = Math.max(this.newestChange, position);
    return { type, stateKey, event: stored, previousNid: previous?.nid, keyNid: undefined };
  }

  /** Replaces the whole current state by a state that the caller has prepared. */
  replaceState(state: HeadState, position: number): void {
    this.currentState = state;
    this.newestChange = Math.max(this.newestChange, position);
  }
}
