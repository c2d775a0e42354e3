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
  const waiting = new Map<string, number>();
  const namedBy = new Map<string, string[]>();
  const ready: string[] = [];
  for (const [id, { event }] of events) {
    const unknown = new Set(event.authEventIds.filter((authId) => !isKnown(authId)));
    waiting.set(id, unknown.size);
    if (unknown.size === 0) ready.push(id);
    for (const authId of unknown) {
      const names = namedBy.get(authId);
      if (names) names.push(id);
      else namedBy.set(authId, [id]);
    }
  }
  const ordered: VerifiedEvent[] = [];
  for (const id of ready) {
    ordered.push(events.get(id)!);
    for (const later of namedBy.get(id) ?? []) {
      const left = waiting.get(later)! - 1;
      waiting.set(later, left);
      if (left === 0) ready.push(later);
    }
  }
  return ordered;
}
