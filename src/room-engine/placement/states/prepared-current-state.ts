import type { TimeSlices } from '../../../kernel/time-slices.ts';
import { splitStateMapKey } from '../../../protocol/index.ts';
import type { GroupChain } from '../../state/group-chain.ts';
import type { MembershipChange, StateChange, StoredEvent } from '../../stored-event.ts';
import { HeadState, type StateEntry, stateEntry } from '../../timeline/head-state.ts';
import type { WritableHead } from '../../timeline/writable-head.ts';
import type { AppliedChange, CurrentStateChange } from './current-state.ts';

/** A change of a membership; `eventNid` is `undefined` where the entry is removed. */
type PendingMembershipChange = Omit<MembershipChange, 'eventNid'> & { readonly eventNid: number | undefined };

/** A state entry whose position on the stream is set when the change is applied. */
type PendingEntry = Omit<StateEntry, 'stream'> & { stream: number };

/**
 * A large change of the current state, computed in steps on a copy of the head's state. Applying it takes little
 * time also in large rooms.
 */
export class PreparedCurrentState {
  readonly #stateMark: WritableHead['stateMark'];
  readonly #state = new HeadState();
  /** New entries, whose position on the stream is not known yet. */
  readonly #newEntries: PendingEntry[] = [];
  readonly #stateChanges: StateChange[] = [];
  readonly #membershipChanges: PendingMembershipChange[] = [];
  readonly #chain: GroupChain;

  private constructor(head: WritableHead, chain: GroupChain) {
    this.#stateMark = head.stateMark;
    this.#chain = chain;
  }

  /** Prepares a change, which becomes invalid when the state of the head changes: see `isValidFor`. */
  static async prepare(
    head: WritableHead,
    change: Omit<CurrentStateChange, 'newGroups'>,
    slices: TimeSlices,
  ): Promise<PreparedCurrentState> {
    const prepared = new PreparedCurrentState(head, change.chain);
    await prepared.#fill(head, change, slices);
    return prepared;
  }

  /** Returns whether the head still has the state that the change was prepared for. */
  isValidFor(head: WritableHead): boolean {
    return head.isUnchanged(this.#stateMark);
  }

  /**
   * Makes the prepared state the head's state; call it once.
   * @param cause the event that brought the state
   */
  apply(head: WritableHead, cause: StoredEvent, position: number): AppliedChange {
    if (!this.isValidFor(head)) throw new Error('the current state of the room has changed');
    for (const entry of this.#newEntries) entry.stream = position;
    head.replaceState(this.#state, position);
    head.chain = this.#chain;
    const membershipChanges = this.#membershipChanges.map((change) => ({
      ...change,
      eventNid: change.eventNid ?? cause.nid,
    }));
    return { stateChanges: this.#stateChanges, membershipChanges };
  }

  async #fill(
    head: WritableHead,
    { entries, events, keyNids }: Omit<CurrentStateChange, 'newGroups'>,
    slices: TimeSlices,
  ): Promise<void> {
    await slices.each(head.state, ([key, entry]) => {
      if (!entries.has(key)) this.#state.set(key, entry);
    });
    await slices.each(entries, ([key, nid]) => {
      const [type, stateKey] = splitStateMapKey(key);
      const stored = events.get(nid);
      if (nid !== 0 && !stored) throw new Error(`state event ${nid} is not in memory`);
      const previousNid = head.state.get(key)?.nid;
      this.#stateChanges.push({ type, stateKey, event: stored, previousNid, keyNid: keyNids.get(key) });
      const entry = stored && stateEntry(stored, 0);
      if (type === 'm.room.member') {
        const to = entry?.membership ?? 'leave';
        this.#membershipChanges.push({
          userId: stateKey,
          from: head.membership(stateKey),
          to,
          eventNid: stored?.nid,
        });
      }
      if (!entry) return;
      this.#newEntries.push(entry);
      this.#state.set(key, entry);
    });
  }
}
