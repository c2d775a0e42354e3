import { sql } from 'kysely';
import {
  type Database,
  type DatabaseCheck,
  type Migration,
  rowsCheck,
  type SchemaBuilder,
  type Writer,
  writerFor,
} from '../../kernel/database/index.ts';
import { parseRoomAlias } from '../../protocol/index.ts';
import type { DirectoryTables } from '../tables.ts';

type Room = DirectoryTables['room_stats'];
type ListedRow = DirectoryTables['listed_rooms'];

/** The texts that lists can be sorted by. */
const sortedTexts = [
  'name',
  'canonical_alias',
  'version',
  'creator',
  'encryption',
  'join_rule',
  'history_visibility',
] as const;

/** The flags, 0 or 1, that lists can be sorted by. */
const sortedFlags = ['federatable', 'guest_can_join'] as const;

/** Maximum characters of a sorted text, because PostgreSQL limits the length of values in an index. */
const maxSorted = 200;

/** Condition that selects the rooms of `room_stats` without a row in `listed_rooms`. */
const lacksRow = 'not exists (select 1 from listed_rooms l where l.room_id = room_stats.room_id)';

/** Condition that selects the rows of `listed_rooms` without a room in `room_stats`. */
const lacksRoom = 'not exists (select 1 from room_stats r where r.room_id = listed_rooms.room_id)';

/** Number of rooms that `addMissingRooms` reads and writes at once. */
const rowsAtOnce = 500;

/** Returns the row of `listed_rooms` for a room: the values that lists of rooms sort and search by. */
export const listedRoom = (room: Room): ListedRow => ({
  room_id: room.room_id,
  name: sortable(room.name),
  canonical_alias: sortable(room.canonical_alias),
  version: sortable(room.version),
  creator: sortable(room.creator),
  encryption: sortable(room.encryption),
  join_rule: sortable(room.join_rule),
  history_visibility: sortable(room.history_visibility),
  federatable: room.federatable,
  guest_can_join: room.guest_can_join,
  search_text: `${room.name ?? ''}\n${localpartOf(room.canonical_alias ?? '')}`.toLowerCase().toWellFormed(),
});

/** Returns the given rows, except rows that the database already has with the same values. */
export async function changedListedRooms(
  database: Database,
  rows: readonly ListedRow[],
): Promise<ListedRow[]> {
  if (rows.length === 0) return [];
  const written = await database
    .scanner<DirectoryTables>()
    .selectFrom('listed_rooms')
    .selectAll()
    .where(
      'room_id',
      'in',
      rows.map((row) => row.room_id),
    )
    .execute();
  const byId = new Map(written.map((row) => [row.room_id, row]));
  return rows.filter((row) => {
    const before: Readonly<Record<string, unknown>> = { ...byId.get(row.room_id) };
    return Object.entries(row).some(([column, value]) => before[column] !== value);
  });
}

export async function writeListedRooms(
  writer: Writer<DirectoryTables>,
  rows: readonly ListedRow[],
): Promise<void> {
  for (const { room_id, ...row } of rows)
    await writer
      .insertInto('listed_rooms')
      .values({ room_id, ...row })
      .onConflict((conflict) => conflict.column('room_id').doUpdateSet(row))
      .execute();
}

/**
 * Creates an index for each order of the lists of rooms. Values that do not change when users join or leave have a
 * table of their own: when a row changes, PostgreSQL writes an entry in each index of its table.
 */
export const listedRoomsMigration: Migration = {
  name: 'directory/0005-listed-rooms',
  async up(schema) {
    await createListedRooms(schema);
    await addMissingRooms(schema.db as unknown as Writer<DirectoryTables>);
    const { db } = schema;
    const createIndex = (table: string, column: string) =>
      db.schema.createIndex(`${table}_by_${column}`).on(table).columns([column, 'room_id']).execute();
    for (const column of [...sortedTexts, ...sortedFlags]) await createIndex('listed_rooms', column);
    await db.schema.dropIndex('room_stats_by_name').execute();
    for (const column of ['joined_local_members', 'state_events']) await createIndex('room_stats', column);
  },
};

/** Checks that `room_stats` and `listed_rooms` have the same rooms, because lists of rooms read both tables. */
export const listedRoomChecks: readonly DatabaseCheck[] = [
  rowsCheck({
    problem: 'rows of listed_rooms for rooms that room_stats does not have',
    select: `select room_id as subject from listed_rooms where ${lacksRoom}`,
    mend: `delete from listed_rooms where ${lacksRoom}`,
  }),
  {
    ...rowsCheck({
      problem:
        'rooms that searches and lists sorted by a text leave out, because listed_rooms has no row for them',
      select: `select room_id as subject from room_stats where ${lacksRow}`,
    }),
    mend: (writer) => addMissingRooms(writerFor<DirectoryTables>(writer)),
  },
];

async function createListedRooms({ db, clustered }: SchemaBuilder): Promise<void> {
  let table = db.schema
    .createTable('listed_rooms')
    .addColumn('room_id', 'text', (column) => column.primaryKey());
  for (const column of sortedTexts) table = table.addColumn(column, 'text', (type) => type.notNull());
  for (const column of sortedFlags) table = table.addColumn(column, 'integer', (type) => type.notNull());
  await clustered(table.addColumn('search_text', 'text', (column) => column.notNull())).execute();
}

/** Adds the rows of all rooms without one, some at a time. */
async function addMissingRooms(db: Writer<DirectoryTables>): Promise<void> {
  for (let after = -1; ; ) {
    const rooms = await db
      .selectFrom('room_stats')
      .selectAll()
      .where('room_nid', '>', after)
      .where(sql<boolean>`${sql.raw(lacksRow)}`)
      .orderBy('room_nid')
      .limit(rowsAtOnce)
      .execute();
    const last = rooms.at(-1);
    if (last === undefined) return;
    await db.insertInto('listed_rooms').values(rooms.map(listedRoom)).execute();
    after = last.room_nid;
  }
}

/** Returns the first `maxSorted` characters of a text; empty for null. */
const sortable = (text: string | null): string => {
  if (text === null) return '';
  const start =
    text.length <= maxSorted ? text : [...text.slice(0, 2 * maxSorted)].slice(0, maxSorted).join('');
  return start.toWellFormed();
};

/** Returns the localpart; empty for a text that is not an alias. */
const localpartOf = (alias: string): string => parseRoomAlias(alias)?.localpart ?? '';
