import { type CheckedStores, type DatabaseCheck, FindingCollector } from '../../kernel/database/index.ts';
import type { RoomTables } from '../tables.ts';

/**
 * Reads the state of a group from its chain of deltas: state key nid to event nid. In a damaged database the chain
 * may be circular; then each group is read once.
 */
async function stateOf({ state }: CheckedStores, group: number): Promise<Map<number, number>> {
  const reader = state.scanner<RoomTables>();
  const entries = new Map<number, number>();
  const read = new Set<number>();
  for (let next: number | undefined = group; next !== undefined && !read.has(next); ) {
    const id: number = next;
    read.add(id);
    const rows = await reader
      .selectFrom('state_groups_state')
      .select(['key_nid', 'event_nid'])
      .where('group_id', '=', id)
      .execute();
    // The chain is read from the newest group to the oldest, so the first entry of a key is the current entry.
    for (const { key_nid, event_nid } of rows) if (!entries.has(key_nid)) entries.set(key_nid, event_nid);
    const edge = await reader
      .selectFrom('state_group_edges')
      .select('prev_id')
      .where('id', '=', id)
      .executeTakeFirst();
    next = edge?.prev_id;
  }
  for (const [key, event] of entries) if (event === 0) entries.delete(key);
  return entries;
}

/** Finds rooms in which the current state and the state of the newest state group differ. */
export const differingCurrentState: DatabaseCheck = {
  problem: 'rooms whose current state differs from their newest state group',
  async find(stores) {
    const findings = new FindingCollector();
    const reader = stores.main.scanner<RoomTables>();
    const rooms = await reader
      .selectFrom('rooms')
      .select(['room_nid', 'room_id', 'state_group'])
      .where('state_group', 'is not', null)
      .where('partial_state', 'is', null)
      .execute();
    for (const { room_nid, room_id, state_group } of rooms) {
      const rows = await reader
        .selectFrom('current_state')
        .select(['key_nid', 'event_nid'])
        .where('room_nid', '=', room_nid)
        .execute();
      const state = await stateOf(stores, state_group ?? 0);
      const isSameState =
        rows.length === state.size && rows.every((row) => state.get(row.key_nid) === row.event_nid);
      if (!isSameState) findings.add(room_id);
    }
    return findings.result;
  },
};
