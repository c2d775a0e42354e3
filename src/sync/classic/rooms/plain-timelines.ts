import type { Clock } from '../../../kernel/clock.ts';
import { allReady, whenReady } from '../../../kernel/when-ready.ts';
import { stateMapKey } from '../../../protocol/index.ts';
import type { RoomHead, RoomReader } from '../../../room-engine/index.ts';
import type { Range } from '../../../sync-contract/index.ts';
import type { Recipient } from '../recipient.ts';
import type { SentMembers } from './sent-members.ts';
import type { SharedTimeline, SharedTimelines } from './shared-timelines.ts';

export interface PlainTimelinesDeps {
  readonly engine: RoomReader;
  readonly clock: Clock;
  readonly sharedTimelines: SharedTimelines;
  readonly sentMembers: SentMembers;
}

/**
 * Timelines of clients that sync often: they contain the events in the form that all members except the senders
 * receive, and come without state. Most timelines of a busy server are of this kind. Each is made once for all members,
 * from memory.
 */
export class PlainTimelines {
  readonly #deps: PlainTimelinesDeps;

  constructor(deps: PlainTimelinesDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the timeline of a range as JSON text, for a client that knows the room up to `range.after`; without a
   * promise when it was made before. `undefined` when the timeline is not the same for all members or takes a database
   * query, so that the caller must read it.
   */
  find(head: RoomHead, recipient: Recipient, range: Range): string | undefined | Promise<string | undefined> {
    const { engine, clock, sharedTimelines } = this.#deps;
    const { userId, filter, timelineLimit } = recipient;
    const { timeline: wanted } = filter.room;
    const hasDefaultFormat = filter.format === 'client' && !filter.selectFields && !wanted.selectsByRelations;
    if (!hasDefaultFormat || wanted.passesNothing || !wanted.passesRoom(head.roomId)) return undefined;
    const inputs = allReady<[SharedTimeline | undefined, ReadonlySet<string>]>([
      sharedTimelines.find(head, range),
      engine.ignored.of(userId),
    ]);
    return whenReady(inputs, ([shared, ignored]) => {
      if (!shared) return undefined;
      const { events, senders } = shared;
      if (events.length > timelineLimit || senders.has(userId)) return undefined;
      for (const sender of senders) if (ignored.has(sender)) return undefined;
      for (const { event } of events) if (!wanted.passes(event)) return undefined;
      return this.#knowsSenders(head, recipient, senders, range) ? shared.text(clock.now()) : undefined;
    });
  }

  /** Whether a lazy-loading client has the memberships of the senders. */
  #knowsSenders(
    head: RoomHead,
    recipient: Recipient,
    senders: ReadonlySet<string>,
    { after, upTo }: Range,
  ): boolean {
    const filter = recipient.filter.room.state;
    if (!filter.lazyLoadMembers || !filter.passesRoom(head.roomId)) return true;
    if (filter.includeRedundantMembers) return false;
    const sent = this.#deps.sentMembers.of(recipient, head.roomId);
    for (const sender of senders) {
      const entry = head.state.get(stateMapKey('m.room.member', sender));
      if (!entry || entry.stream > upTo || !sent.has(sender, entry.nid, after)) return false;
    }
    return true;
  }
}
