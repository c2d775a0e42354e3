import { type TableSize, tableSizes } from '../../kernel/database/index.ts';
import { largestRooms, type RoomSize } from '../../room-engine/index.ts';
import type { ConfigFlags } from '../configuration-files.ts';
import { configuredDatabases, openStores } from './configured-database.ts';

export interface SizeFlags extends ConfigFlags {
  readonly json?: boolean;
}

/** Maximum number of rooms in the report. */
const maxRooms = 20;

/** `hearth database size`: reports the disk space of tables, and the rooms whose events take the most space. The server may run. */
export async function measureDatabase(flags: SizeFlags): Promise<void> {
  const options = configuredDatabases(flags);
  const { kind } = options.main;
  const stores = await openStores(options, false);
  try {
    const databases = [...new Set([stores.main, stores.state])];
    const sizes = await Promise.all(databases.map((database) => tableSizes({ kind, database })));
    const tables = addedUp(sizes.flat());
    const rooms = await largestRooms(stores, kind, maxRooms);
    process.stdout.write(flags.json ? `${JSON.stringify({ tables, rooms })}\n` : report(tables, rooms));
  } finally {
    await stores.close();
  }
}

/** Adds up the sizes of tables that are in both databases. Returns the largest table first. */
function addedUp(tables: readonly TableSize[]): TableSize[] {
  const bytes = new Map<string, number>();
  for (const { table, bytes: tableBytes } of tables) bytes.set(table, (bytes.get(table) ?? 0) + tableBytes);
  return [...bytes]
    .map(([table, sum]) => ({ table, bytes: sum }))
    .sort((left, right) => right.bytes - left.bytes);
}

function report(tables: readonly TableSize[], rooms: readonly RoomSize[]): string {
  const total = tables.reduce((sum, { bytes }) => sum + bytes, 0);
  const tableLines = tables.map(({ table, bytes }) => `${mebibytes(bytes)}  ${table}\n`);
  const roomLines = rooms.map(
    ({ roomId, events, bytes, stateGroups }) =>
      `${mebibytes(bytes)}  ${roomId}: ${events} events, ${stateGroups} state groups\n`,
  );
  return (
    `Tables with their indexes, ${mebibytes(total).trim()} together:\n${tableLines.join('')}\n` +
    `Rooms whose events take the most space:\n${roomLines.join('')}`
  );
}

const mebibytes = (bytes: number): string => `${(bytes / 1_048_576).toFixed(1).padStart(10)} MiB`;
