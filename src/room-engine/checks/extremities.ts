import { type DatabaseCheck, FindingCollector, type Reader, writerFor } from '../../kernel/database/index.ts';
import type { RoomTables } from '../tables.ts';

/** Number of rooms that are read at a time. */
const roomsAtOnce = 500;

/** Number of events that are looked up at a time. */
const eventsAtOnce = 2_000;

/**
 * The forward extremities of a damaged room, as nids (numbers of events in the database): those whose events are
 * stored, and those whose events are missing.
 */
interface RoomExtremities {
  readonly roomNid: number;
  readonly roomId: string;
  readonly stored: readonly number[];
  readonly missing: readonly number[];
}

/**
 * Yields each room with a forward extremity whose event is missing, and each room with a state but without any stored
 * forward extremity.
 */
async function* brokenExtremities(reader: Reader<RoomTables>): AsyncGenerator<RoomExtremities> {
  for (let after = 0; ; ) {
    const rooms = await reader
      .selectFrom('rooms')
      .select(['room_nid', 'room_id', 'extremities', 'state_group'])
      .where('room_nid', '>', after)
      .orderBy('room_nid')
      .limit(roomsAtOnce)
      .execute();
    const roomsWithNids = rooms.map((room) => ({ ...room, nids: parseNids(room.extremities) }));
    const storedNids = await storedEvents(
      reader,
      roomsWithNids.flatMap(({ nids }) => nids),
    );
    for (const { room_nid: roomNid, room_id: roomId, state_group: group, nids } of roomsWithNids) {
      const stored = nids.filter((nid) => storedNids.has(nid));
      const missing = nids.filter((nid) => !storedNids.has(nid));
      if (missing.length > 0 || (group !== null && stored.length === 0))
        yield { roomNid, roomId, stored, missing };
    }
    if (rooms.length < roomsAtOnce) return;
    after = rooms.at(-1)?.room_nid ?? after;
  }
}

/** Returns the nids of a list in JSON; none when the text is damaged. */
function parseNids(text: string): number[] {
  try {
    const nids: unknown = JSON.parse(text);
    return Array.isArray(nids) ? nids.filter(Number.isSafeInteger) : [];
  } catch {
    return [];
  }
}

/** Returns the nids that belong to stored events. */
async function storedEvents(reader: Reader<RoomTables>, nids: readonly number[]): Promise<Set<number>> {
  const stored = new Set<number>();
  for (let start = 0; start < nids.length; start += eventsAtOnce) {
    const rows = await reader
      .selectFrom('events')
      .select('nid')
      .where('nid', 'in', nids.slice(start, start + eventsAtOnce))
      .execute();
    for (const { nid } of rows) stored.add(nid);
  }
  return stored;
}

/**
 * Finds missing forward extremities in rooms that also have stored extremities. The repair keeps only the stored
 * extremities.
 */
export const missingExtremities: DatabaseCheck = {
  problem: 'forward extremities whose events are missing, in rooms that also have stored forward extremities',
  async find({ main }) {
    const findings = new FindingCollector();
    for await (const { roomId, stored, missing } of brokenExtremities(main.scanner()))
      if (stored.length > 0) findings.add(`${roomId}: events ${missing.join(', ')}`);
    return findings.result;
  },
  async mend(writer) {
    const tables = writerFor<RoomTables>(writer);
    for await (const { roomNid, stored } of brokenExtremities(tables)) {
      if (stored.length === 0) continue;
      const extremities = JSON.stringify(stored);
      await tables.updateTable('rooms').set({ extremities }).where('room_nid', '=', roomNid).execute();
    }
  },
};

/** Finds rooms with a state that have no stored forward extremity. They cannot be repaired. */
export const roomsWithoutExtremities: DatabaseCheck = {
  problem: 'rooms with a state but without a stored forward extremity: nothing can be sent to them',
  async find({ main }) {
    const findings = new FindingCollector();
    for await (const { roomId, stored } of brokenExtremities(main.scanner()))
      if (stored.length === 0) findings.add(roomId);
    return findings.result;
  },
};
