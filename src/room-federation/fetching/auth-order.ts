import type { VerifiedEvent } from '../../room-engine/index.ts';

/**
 * Sorts events so that each follows its auth events. Leaves out events whose auth chain is incomplete or
 * contains a cycle.
 * @param isKnown whether an event is stored already
 */
export function sortByAuthEvents(
  events: ReadonlyMap<string, VerifiedEvent>,
  isKnown: (eventId: string) => boolean,
): VerifiedEvent[] {
  /** Number of auth events that are not in the result yet, by event id. */
  const waiting = new Map<string, number>();
  /** Ids of the events that refer to an auth event, by the id of the auth event. */
  const referencedBy = new Map<string, string[]>();
  const ready: string[] = [];
  for (const [id, { event }] of events) {
    const unknown = new Set(event.authEventIds.filter((authId) => !isKnown(authId)));
    waiting.set(id, unknown.size);
    if (unknown.size === 0) ready.push(id);
    for (const authId of unknown) {
      const referring = referencedBy.get(authId);
      if (referring) referring.push(id);
      else referencedBy.set(authId, [id]);
    }
  }
  const ordered: VerifiedEvent[] = [];
  for (const id of ready) {
    ordered.push(events.get(id)!);
    for (const later of referencedBy.get(id) ?? []) {
      const remaining = waiting.get(later)! - 1;
      waiting.set(later, remaining);
      if (remaining === 0) ready.push(later);
    }
  }
  return ordered;
}
