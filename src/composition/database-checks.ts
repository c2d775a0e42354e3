import {
  type DatabaseCheck,
  type DatabaseKind,
  numberChecks,
  rowsCheck,
  sqliteFileCheck,
} from '../kernel/database/index.ts';
import type { SliceManifest } from '../kernel/slices/index.ts';
import { slices } from '../slices.ts';

/**
 * Returns all checks of the database: the checks that slices declare, and checks for damage of the SQLite file, for
 * rows of deleted rooms and deleted devices, and for numbers that the server would assign a second time
 * (`numberChecks`).
 */
export const databaseChecks = (kind: DatabaseKind): DatabaseCheck[] => [
  ...(kind === 'sqlite' ? [sqliteFileCheck] : []),
  ...slices.flatMap(({ checks = [] }) => checks),
  ...slices.flatMap(rowsOfRooms),
  ...slices.flatMap(rowsOfDevices),
  ...numberChecks([
    ...slices.flatMap(({ assignedNumbers = [] }) => assignedNumbers),
    { bound: 'positions', table: 'stream_followers', column: 'position' },
  ]),
];

/**
 * Returns the checks for rows of deleted rooms, one for each table of a slice that refers to rooms by their numbers
 * (`room nid`). An interrupted deletion of a room leaves such rows until the deletion continues.
 */
const rowsOfRooms = ({ roomRows }: SliceManifest): DatabaseCheck[] =>
  (roomRows?.tables ?? [])
    .filter(({ holds }) => holds === 'room nid')
    .map(({ table, column }) => {
      const isOrphan = `not exists (select 1 from rooms r where r.room_nid = ${table}.${column})`;
      return rowsCheck({
        problem: `rows of ${table} for rooms that do not exist`,
        select: `select ${column} as subject from ${table} where ${isOrphan}`,
        mend: `delete from ${table} where ${isOrphan}`,
      });
    });

const rowsOfDevices = ({ deviceRows }: SliceManifest): DatabaseCheck[] =>
  (deviceRows?.tables ?? []).map(({ table, userColumn, deviceColumn }) => {
    const isOrphan = `not exists (select 1 from devices d
      where d.user_id = ${table}.${userColumn} and d.device_id = ${table}.${deviceColumn})`;
    return rowsCheck({
      problem: `rows of ${table} for devices that do not exist`,
      select: `select ${userColumn} as subject from ${table} where ${isOrphan}`,
      mend: `delete from ${table} where ${isOrphan}`,
    });
  });
