import type { TimeSlices } from '../../../kernel/time-slices.ts';
import type { VerifiedEvent } from '../../../room-engine/index.ts';
import { sortByAuthEvents } from '../../fetching/auth-order.ts';

/** Says which of some events are stored here and were checked, by their ids. */
export type StoredIds = (eventIds: readonly string[]) => Promise<ReadonlySet<string>>;

/** Events of a room as a server has sent them. */
export interface SentEvents {
  readonly state: readonly VerifiedEvent[];
  readonly authChain: readonly VerifiedEvent[];
}

/**
 * Leaves out the events of which nobody can tell whether they are allowed, since others that they refer to have not
 * been sent, or could not be verified. One bad event among thousands is no reason to stay out of a room.
 */
export async function dropWithoutAuthEvents(
  { state, authChain }: SentEvents,
  stored: StoredIds,
  slices: TimeSlices,
): Promise<SentEvents> {
  const sent = new Map<string, VerifiedEvent>();
  const all = [...authChain, ...state];
  await slices.each(all, (one) => void sent.set(one.event.eventId, one));
  const named = new Set<string>();
  await slices.each(all, ({ event }) => {
    for (const eventId of event.authEventIds) if (!sent.has(eventId)) named.add(eventId);
  });
  if (named.size === 0) return { state, authChain };
  const known = await stored([...named]);
  if (known.size === named.size) return { state, authChain };
  const kept = new Set(sortByAuthEvents(sent, (id) => known.has(id)).map(({ event }) => event.eventId));
  const isKept = ({ event }: VerifiedEvent) => kept.has(event.eventId);
  return { state: state.filter(isKept), authChain: authChain.filter(isKept) };
}
