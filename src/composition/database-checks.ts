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
 * Returns all checks of the database. They find: damage of the SQLite file; what the checks of slices declare; rows for rooms
 * and devices that do not exist; and columns with numbers that the server would assign a second time (`numberChecks`).
 */
export const databaseChecks = (kind: DatabaseKind): DatabaseCheck[] => [
  ...(kind === 'sqlite' ? [sqliteFileCheck] : []),
  ...slices.flatMap(({ checks = [] }) => checks),
  ...slices.flatMap(rowsOfRooms),
  ...slices.flatMap(rowsOfDevices),
  ...numberChecks([
    ...slices.flatMap(({ numbers = [] }) => numbers),
    { bound: 'positions', table: 'stream_followers', column: 'position' },
  ]),
];

/** Checks for rows of deleted rooms. A deletion of a room that was interrupted leaves such rows until it continues. */
const rowsOfRooms = ({ roomRows }: SliceManifest): DatabaseCheck[] =>
  (roomRows?.tables ?? [])
    .filter(({ holds }) => holds === 'room nid')
    .map(({ table, column }) => {
      const isLeft = `not exists (select 1 from rooms r where r.room_nid = ${table}.${column})`;
      return rowsCheck({
        problem: `rows of ${table} for rooms that do not exist`,
        select: `select ${column} as subject from ${table} where ${isLeft}`,
        mend: `delete from ${table} where ${isLeft}`,
      });
    });

const rowsOfDevices = ({ deviceRows }: SliceManifest): DatabaseCheck[] =>
  (deviceRows?.tables ?? []).map(({ table, userColumn, deviceColumn }) => {
    const isLeft = `not exists (select 1 from devices d
      where d.user_id = ${table}.${userColumn} and d.device_id = ${table}.${deviceColumn})`;
    return rowsCheck({
      problem: `rows of ${table} for devices that do not exist`,
      select: `select ${userColumn} as subject from ${table} where ${isLeft}`,
      mend: `delete from ${table} where ${isLeft}`,
    });
  });
