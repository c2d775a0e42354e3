import type { TimeSlices } from '../../../kernel/time-slices.ts';
import type { VerifiedEvent } from '../../../room-engine/index.ts';
import { sortByAuthEvents } from '../../fetching/auth-order.ts';

/** Returns those of these ids whose events are stored, and so were verified before. */
export type StoredIds = (eventIds: readonly string[]) => Promise<ReadonlySet<string>>;

/** Verified events of a `send_join` response. */
export interface SentEvents {
  readonly state: readonly VerifiedEvent[];
  readonly authChain: readonly VerifiedEvent[];
}

/**
 * Leaves out events whose auth events are missing or failed verification: they cannot be authorized. One
 * invalid event among thousands must not prevent a join.
 */
export async function dropWithoutAuthEvents(
  { state, authChain }: SentEvents,
  stored: StoredIds,
  slices: TimeSlices,
): Promise<SentEvents> {
  const sent = new Map<string, VerifiedEvent>();
  const all = [...authChain, ...state];
  await slices.each(all, (verified) => void sent.set(verified.event.eventId, verified));
  const referenced = new Set<string>();
  await slices.each(all, ({ event }) => {
    for (const eventId of event.authEventIds) if (!sent.has(eventId)) referenced.add(eventId);
  });
  if (referenced.size === 0) return { state, authChain };
  const known = await stored([...referenced]);
  if (known.size === referenced.size) return { state, authChain };
  const keptIds = new Set(sortByAuthEvents(sent, (id) => known.has(id)).map(({ event }) => event.eventId));
  const isKept = ({ event }: VerifiedEvent) => keptIds.has(event.eventId);
  return { state: state.filter(isKept), authChain: authChain.filter(isKept) };
}
