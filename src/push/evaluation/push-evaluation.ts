import type { CacheRegistry } from '../../kernel/caches/index.ts';
import { NotifiedMembers, type NotifiedMembersDeps } from './member.ts';
import { PushEvents } from './push-events.ts';

export interface PushEvaluationDeps extends NotifiedMembersDeps {
  readonly caches: CacheRegistry;
}

/** Evaluates push rules for unread counts, the list of notifications and pushers: events are prepared once for all. */
export class PushEvaluation {
  readonly events: PushEvents;
  readonly members: NotifiedMembers;

  constructor(deps: PushEvaluationDeps) {
    this.events = new PushEvents(deps.engine, deps.caches);
    this.members = new NotifiedMembers(deps);
  }
}
