import { LoadTogether } from '../../kernel/load-together.ts';
import type { StoredEvent } from '../../room-engine/index.ts';
import { NotifiedMembers, type NotifiedMembersDeps } from './member.ts';
import { PushEvents } from './push-events.ts';

/**
 * Evaluates push rules for unread counts, the list of notifications and pushers: each event is prepared once for all
 * three.
 */
export class PushEvaluation {
  readonly events: PushEvents;
  readonly members: NotifiedMembers;

  constructor(deps: NotifiedMembersDeps) {
    const { engine, caches } = deps;
    const stateEvents = new LoadTogether<number, StoredEvent>((nids) => engine.events.getMany(nids));
    this.events = new PushEvents({ engine, caches, stateEvents });
    this.members = new NotifiedMembers(deps, stateEvents);
  }
}
