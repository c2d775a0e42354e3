import type { ClientEvent, RoomEvent } from '../../protocol/index.ts';
import type { HistoryPlace } from '../timeline/event-store.ts';
import type { VisibleEvent } from './room-view.ts';

/** What a client wants of a timeline: a `RoomEventFilter` after compilation. */
export interface TimelineFilter {
  readonly lazyLoadMembers: boolean;
  accepts(event: RoomEvent): boolean;
  /** Leaves of each event what `event_fields` names. */
  pick(events: readonly ClientEvent[]): readonly ClientEvent[];
}

/** The filter that lets everything through. */
export const everything: TimelineFilter = {
  lazyLoadMembers: false,
  accepts: () => true,
  pick: (events) => events,
};

export interface FilteredPage {
  readonly events: readonly VisibleEvent[];
  /** Where to go on; `undefined` at the end of the history. */
  readonly next: HistoryPlace | undefined;
}
