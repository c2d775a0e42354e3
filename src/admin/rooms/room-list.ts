import { type RawBuilder, type SelectQueryBuilder, sql } from 'kysely';
import type { AccountTables } from '../../accounts/index.ts';
import type { DeviceTables } from '../../devices/index.ts';
import type { DirectoryTables } from '../../directory/index.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { RoomTables } from '../../room-engine/index.ts';
import { contains } from '../paging/contains.ts';
import type { PageStart } from '../paging/page-cursors.ts';
import { type FlagOrder, readByFlag } from '../paging/read-by-flag.ts';
import {
  countRows,
  type RowsOfPage,
  readByKeys,
  readFewByKeys,
  readPageByKeys,
} from '../paging/read-page.ts';

/** The filters of a list of rooms. Absent filters select all rooms. */
export interface RoomFilter {
  /** A part of the room's name, of the localpart of its canonical alias, or of its room id. */
  readonly searchTerm?: string | undefined;
  /** `true`: only rooms in the public room directory; `false`: only other rooms. */
  readonly isPublic?: boolean | undefined;
  /** `true`: only rooms without joined users; `false`: only rooms with joined users. */
  readonly isEmpty?: boolean | undefined;
}

export const roomOrders = [
  'name',
  'alphabetical',
  'size',
  'canonical_alias',
  'joined_members',
  'joined_local_members',
  'version',
  'creator',
  'encryption',
  'federatable',
  'public',
  'join_rules',
  'guest_access',
  'history_visibility',
  'state_events',
] as const;

/** A value of the parameter `order_by`. */
export type RoomOrder = (typeof roomOrders)[number];

/** A room as lists show it. */
export type ListedRoom = DirectoryTables['room_stats'] & { readonly is_public: number };

type Tables = DirectoryTables & RoomTables & DeviceTables & AccountTables;

/**
 * The tables with the columns of the orders. Each column has an index that also contains the ids of
 * the rooms.
 */
type OrderTable = 'listed_rooms' | 'room_stats';

/** Rows of either table. */
type Rooms = SelectQueryBuilder<{ r: { room_id: string } }, 'r', object>;

const isPublic = sql<number>`(case when exists (
  select 1 from published_rooms p where p.room_id = r.room_id and p.network = ''
) then 1 else 0 end)`;

/** The same condition as `isPublic`, for reads of many rooms: databases read the public rooms once. */
const isAmongPublic = sql<boolean>`(r.room_id in (select p.room_id from published_rooms p where p.network = ''))`;

interface Order {
  readonly table: OrderTable;
  readonly by: RawBuilder<unknown>;
  readonly flag?: Pick<FlagOrder, 'is' | 'skipsFast'>;
}

/** Returns an order by a column that describes the room, for instance its name. */
const byDescription = (column: keyof DirectoryTables['listed_rooms']) => ({
  table: 'listed_rooms' as const,
  by: sql.ref(`r.${column}`),
});

/** Returns an order by a number, for instance of members. */
const byCount = (column: keyof DirectoryTables['room_stats']) => ({
  table: 'room_stats' as const,
  by: sql.ref(`r.${column}`),
});

/** Databases read the public rooms and then the others, or the reverse, in the index of the ids. */
const byPublication: Order = {
  table: 'room_stats',
  by: sql`(case when ${isAmongPublic} then 1 else 0 end)`,
  flag: { is: (value) => (value === 1 ? isAmongPublic : sql`not ${isAmongPublic}`), skipsFast: true },
};

const orders: Readonly<Record<RoomOrder, Order>> = {
  name: byDescription('name'),
  alphabetical: byDescription('name'),
  size: byCount('joined_members'),
  canonical_alias: byDescription('canonical_alias'),
  joined_members: byCount('joined_members'),
  joined_local_members: byCount('joined_local_members'),
  version: byDescription('version'),
  creator: byDescription('creator'),
  encryption: byDescription('encryption'),
  federatable: byDescription('federatable'),
  public: byPublication,
  join_rules: byDescription('join_rule'),
  guest_access: byDescription('guest_can_join'),
  history_visibility: byDescription('history_visibility'),
  state_events: byCount('state_events'),
};

/** The rooms that match a search term. */
export interface TermMatches {
  readonly total: number;
  /** The ids of these rooms; absent for more than `maxCollected` rooms. */
  readonly roomIds?: readonly string[];
}

/** Maximum number of rooms whose ids a search collects. More rooms are only counted. */
const maxCollected = 2_000;

/**
 * Maximum characters of a short term. Short terms probably match many rooms, which are counted before ids are
 * collected.
 */
const shortTerm = 2;

/** Orders that begin with the largest value. */
const largestFirst: ReadonlySet<RoomOrder> = new Set([
  'size',
  'joined_members',
  'joined_local_members',
  'version',
  'state_events',
]);

/** Reads the rooms that this server knows. */
export class RoomList {
  readonly #database: Database;
  /** Resolves when the tables of rooms are up to date. */
  readonly #caughtUp: () => Promise<void>;

  constructor(deps: { readonly database: Database; readonly caughtUp: () => Promise<void> }) {
    this.#database = deps.database;
    this.#caughtUp = deps.caughtUp;
  }

  /**
   * @param page `total`: the number of rooms on all pages, if it is known; `roomIds`: their ids, if `search` has collected
   * them
   */
  async page(
    filter: RoomFilter,
    order: { readonly by: RoomOrder; readonly backwards: boolean },
    page: { readonly start: PageStart; readonly limit: number } & Partial<TermMatches>,
  ): Promise<RowsOfPage<ListedRoom>> {
    await this.#caughtUp();
    const descending = largestFirst.has(order.by) !== order.backwards;
    const { table, by: value, flag } = orders[order.by];
    // Rooms with equal values are sorted by id in the same direction, as in the reference server, so that an index has this order.
    const by = { by: value, key: sql`r.room_id`, descending, keyDescends: descending };
    const read = (roomIds: readonly string[]) => this.#read(roomIds);
    const rooms = this.#filtered(filter, table);
    if (filter.searchTerm !== undefined) {
      const { total, roomIds } = page.total === undefined ? await this.search(filter) : (page as TermMatches);
      if (total === 0) return { rows: [], next: undefined };
      const hasFewMatches = total <= maxCollected;
      const found = roomIds ? this.#filtered({}, table).where('r.room_id', 'in', roomIds) : rooms;
      if (hasFewMatches) return readFewByKeys(this.#database, found, by, page, read);
      return readPageByKeys(rooms, by, page, read);
    }
    if (!flag) return readPageByKeys(rooms, by, page, read);
    const { start, limit } = page;
    const found = await readByFlag(this.#database, rooms, { ...by, ...flag }, start, limit + 1);
    return readByKeys(found, limit, read);
  }

  /** Counts the rooms that the filter selects. */
  count(filter: RoomFilter): Promise<number> {
    return countRows(this.#filtered(filter, 'room_stats'));
  }

  /** Searches the rooms that the filter selects: collects their ids, or only counts the rooms when there are many. */
  async search(filter: RoomFilter): Promise<TermMatches> {
    await this.#caughtUp();
    const rooms = this.#filtered(filter, 'listed_rooms');
    const isShortTerm = (filter.searchTerm ?? '').length <= shortTerm;
    const counted = isShortTerm ? await countRows(rooms) : 0;
    if (counted > maxCollected) return { total: counted };
    const found = await rooms
      .select('r.room_id')
      .limit(maxCollected + 1)
      .execute();
    if (found.length > maxCollected) return { total: await countRows(rooms) };
    return { total: found.length, roomIds: found.map(({ room_id: roomId }) => roomId) };
  }

  async get(roomId: string): Promise<ListedRoom | undefined> {
    await this.#caughtUp();
    return this.#all()
      .selectAll('r')
      .select(isPublic.as('is_public'))
      .where('r.room_id', '=', roomId)
      .executeTakeFirst();
  }

  /** Counts the devices of the local users who are joined to a room. */
  async localDevices(roomNid: number): Promise<number> {
    const { total } = await this.#database
      .scanner<Tables>()
      .selectFrom('memberships as m')
      .innerJoin('devices as d', 'd.user_id', 'm.user_id')
      .innerJoin('users as u', 'u.user_id', 'm.user_id')
      .select(({ fn }) => fn.countAll<number | string>().as('total'))
      .where('m.room_nid', '=', roomNid)
      .where('m.membership', '=', 'join')
      .executeTakeFirstOrThrow();
    return Number(total);
  }

  /** Whether all local users with a membership in a room have forgotten it. */
  async isForgotten(roomNid: number): Promise<boolean> {
    const remembered = await this.#database
      .scanner<Tables>()
      .selectFrom('memberships as m')
      .innerJoin('users as u', 'u.user_id', 'm.user_id')
      .select('m.user_id')
      .where('m.room_nid', '=', roomNid)
      .where('m.forgotten', '=', 0)
      .executeTakeFirst();
    return remembered === undefined;
  }

  async #read(roomIds: readonly string[]): Promise<ReadonlyMap<string, ListedRoom>> {
    const rows = await this.#all()
      .selectAll('r')
      .select(isPublic.as('is_public'))
      .where('r.room_id', 'in', roomIds)
      .execute();
    return new Map(rows.map((row) => [row.room_id, row]));
  }

  #all() {
    return this.#database.scanner<Tables>().selectFrom('room_stats as r');
  }

  #filtered({ searchTerm, isPublic: wantsPublic, isEmpty }: RoomFilter, table: OrderTable): Rooms {
    let query = this.#database.scanner<Tables>().selectFrom(`${table} as r`) as unknown as Rooms;
    if (wantsPublic !== undefined) query = query.where(isPublic, '=', wantsPublic ? 1 : 0);
    if (isEmpty !== undefined) query = query.where(hasMembers(!isEmpty, table));
    return searchTerm === undefined ? query : query.where(matches(searchTerm, table));
  }
}

/**
 * Returns a condition for the rooms with joined users, or for the rooms without. Joined users are looked up by a scalar
 * subquery for each room, as in `matches`. Few rooms have no joined users, so one subquery selects all of these rooms.
 */
function hasMembers(expected: boolean, table: OrderTable): RawBuilder<boolean> {
  const condition = (room: string) => sql.raw(`${room}.joined_members ${expected ? '> 0' : '= 0'}`);
  if (table === 'room_stats') return sql<boolean>`${condition('r')}`;
  if (!expected)
    return sql<boolean>`r.room_id in (select s.room_id from room_stats s where ${condition('s')})`;
  return sql<boolean>`(case when exists (
    select 1 from room_stats s where s.room_id = r.room_id and ${condition('s')}) then 1 else 0 end) = 1`;
}

/**
 * Whether a room matches a search term. When the rooms are read from `room_stats`, a scalar subquery reads the text of
 * each room. Databases then read the rooms in their order and do not look up all matching texts first.
 */
function matches(term: string, table: OrderTable): RawBuilder<boolean> {
  const text =
    table === 'listed_rooms'
      ? sql`r.search_text`
      : sql`(select l.search_text from listed_rooms l where l.room_id = r.room_id)`;
  return sql<boolean>`(${contains(text, term.toLowerCase())} or ${contains(sql`r.room_id`, term)})`;
}
