import { NotifiedMembers, type NotifiedMembersDeps } from './member.ts';
import { PushEvents } from './push-events.ts';

/** Evaluates push rules for unread counts, the list of notifications and pushers: events are prepared once for all. */
export class PushEvaluation {
  readonly events: PushEvents;
  readonly members: NotifiedMembers;

  constructor(deps: NotifiedMembersDeps) {
    this.events = new PushEvents(deps.engine, deps.caches);
    this.members = new NotifiedMembers(deps);
  }
}
