import type { StoredEvent } from '../../stored-event.ts';
import type { WritableHead } from '../../timeline/writable-head.ts';
import type { PlacementDeps } from '../placement-deps.ts';
import { readPlacedSince } from '../store.ts';

/** Maximum number of events that are read at the same time. */
const readAtOnce = 200;

/**
 * Returns copies, by nid, of all events since an earlier join whose partial state was never completed. The copies have
 * no state after the event (`stateGroup`): this server joins the room again, and only the states since the new join
 * will be completed. Events that follow the copies are placed with states of other servers, as after any gap. The
 * copies keep the state before the event, because history visibility needs it.
 */
export async function withoutAbandonedStates(
  { database, events, slices }: PlacementDeps,
  head: WritableHead,
): Promise<ReadonlyMap<number, StoredEvent>> {
  const copies = new Map<number, StoredEvent>();
  const join = head.partial && (await events.getById(head.partial.joinEventId));
  if (join?.stream === undefined) return copies;
  const { stream } = join;
  const add = (stored: StoredEvent) => copies.set(stored.nid, { ...stored, stateGroup: undefined });
  const nids = await readPlacedSince(database.scanner(), head.roomNid, stream - 1);
  for (let start = 0; start < nids.length; start += readAtOnce) {
    const eventsByNid = await events.getMany(nids.slice(start, start + readAtOnce));
    for (const stored of eventsByNid.values()) if (!stored.rejected) add(stored);
    await slices.pauseIfDue();
  }
  for (const stored of head.recent) if ((stored.stream ?? 0) >= stream) add(stored);
  return copies;
}
