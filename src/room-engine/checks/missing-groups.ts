import { type CheckedStores, type DatabaseCheck, FindingCollector } from '../../kernel/database/index.ts';
import type { RoomTables } from '../tables.ts';

/** Maximum number of rows per query. */
const rowsAtOnce = 2_000;

/** A row that refers to state groups. */
interface Referrer {
  /** The event id or room id that stands for the row in findings. */
  readonly subject: string;
  readonly groups: readonly number[];
}

/** Adds a finding for each row that refers to missing state groups. */
async function addMissing(
  { state }: CheckedStores,
  referrers: readonly Referrer[],
  findings: FindingCollector,
): Promise<void> {
  const groupIds = [...new Set(referrers.flatMap(({ groups }) => groups))];
  if (groupIds.length === 0) return;
  const rows = await state
    .scanner<RoomTables>()
    .selectFrom('state_groups')
    .select('id')
    .where('id', 'in', groupIds)
    .execute();
  const storedIds = new Set(rows.map(({ id }) => id));
  for (const { subject, groups } of referrers) {
    const missing = groups.filter((group) => !storedIds.has(group));
    if (missing.length > 0) findings.add(`${subject}: state group ${missing.join(', ')}`);
  }
}

const groupsOf = (...groups: (number | null)[]): number[] => groups.filter((group) => group !== null);

/**
 * Finds events whose state group is missing. Queries do not join the table of state groups, which may be in
 * another database.
 */
export const eventsWithoutGroup: DatabaseCheck = {
  problem: 'events whose state group is missing: their rooms cannot be read completely',
  async find(stores) {
    const findings = new FindingCollector();
    for (let after = 0; ; ) {
      const rows = await stores.main
        .scanner<RoomTables>()
        .selectFrom('events')
        .select(['nid', 'event_id', 'state_group', 'state_before'])
        .where('nid', '>', after)
        .orderBy('nid')
        .limit(rowsAtOnce)
        .execute();
      const referrers = rows.map((row) => ({
        subject: row.event_id,
        groups: groupsOf(row.state_group, row.state_before),
      }));
      await addMissing(stores, referrers, findings);
      if (rows.length < rowsAtOnce) return findings.result;
      after = rows.at(-1)?.nid ?? after;
    }
  },
};

/** Finds rooms whose current state group is missing. */
export const roomsWithoutGroup: DatabaseCheck = {
  problem: 'rooms whose state group is missing: nothing can be sent to them',
  async find(stores) {
    const findings = new FindingCollector();
    for (let after = 0; ; ) {
      const rows = await stores.main
        .scanner<RoomTables>()
        .selectFrom('rooms')
        .select(['room_nid', 'room_id', 'state_group'])
        .where('room_nid', '>', after)
        .orderBy('room_nid')
        .limit(rowsAtOnce)
        .execute();
      const referrers = rows.map((row) => ({ subject: row.room_id, groups: groupsOf(row.state_group) }));
      await addMissing(stores, referrers, findings);
      if (rows.length < rowsAtOnce) return findings.result;
      after = rows.at(-1)?.room_nid ?? after;
    }
  },
};
