import { stateMapKey } from '../../protocol/index.ts';
import type { RoomFact } from '../stored-event.ts';
import { stateEntry } from './head-state.ts';
import { InMemoryHead, type InMemoryHeadFields } from './in-memory-head.ts';

/**
 * The head of a room in a process that does not write rooms: read from the database, then updated by facts, which
 * describe the changes that the main process makes.
 */
export class FollowedHead extends InMemoryHead {
  #stateGroup: number | undefined;

  constructor(fields: InMemoryHeadFields & { readonly stateGroup: number | undefined }) {
    super(fields);
    this.#stateGroup = fields.stateGroup;
  }

  get stateGroup(): number | undefined {
    return this.#stateGroup;
  }

  /**
   * Applies a fact of this room that has an `end`. The head may have been read from the database after the fact was
   * committed. State entries newer than the fact stay; the extremities and the state group go back to those of the
   * fact, until the later facts are applied too.
   */
  follow(fact: RoomFact): void {
    const { stored, position, end, redacts } = fact;
    if (!end) throw new Error('only a fact with the end of the room can be applied to a head');
    for (const { type, stateKey, event } of fact.stateChanges) {
      const key = stateMapKey(type, stateKey);
      if ((this.currentState.entries.get(key)?.stream ?? 0) > position) continue;
      this.currentState.set(key, event && stateEntry(event, position));
    }
    this.newestChange = Math.max(this.newestChange, fact.stateChanges.length > 0 ? position : 0);
    this.currentExtremities = end.extremities;
    this.#stateGroup = end.group;
    if (redacts !== undefined) this.markRedacted(redacts, stored.nid);
    this.remember(stored);
  }
}
