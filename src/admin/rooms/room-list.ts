import { type RawBuilder, sql } from 'kysely';
import type { AccountTables } from '../../accounts/index.ts';
import type { DeviceTables } from '../../devices/index.ts';
import type { DirectoryTables } from '../../directory/index.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { RoomTables } from '../../room-engine/index.ts';
import { contains, containsFolded, isLike } from '../paging/contains.ts';
import type { PageStart } from '../paging/page-cursors.ts';
import { countRows, type RowsOfPage, readFewByKeys, readPageByKeys } from '../paging/read-page.ts';

/** The filters of a list of rooms. Absent filters select all rooms. */
export interface RoomFilter {
  /** A part of the name, of the localpart of the canonical alias or of the room id. */
  readonly searchTerm?: string | undefined;
  readonly isPublic?: boolean | undefined;
  /** Whether no user is joined. */
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

export type RoomOrder = (typeof roomOrders)[number];

/** A room as lists show it. */
export type ListedRoom = DirectoryTables['room_stats'] & { readonly is_public: number };

type Tables = DirectoryTables & RoomTables & DeviceTables & AccountTables;

const isPublic = sql<number>`(case when exists (
  select 1 from published_rooms p where p.room_id = r.room_id and p.network = ''
) then 1 else 0 end)`;

/** As `isPublic`, for reads of all rooms: databases read the public rooms once. */
const isAmongPublic = sql<number>`(case when r.room_id in (
  select p.room_id from published_rooms p where p.network = ''
) then 1 else 0 end)`;

/** The first 200 characters of the name, as in its index. */
const name = sql`substr(coalesce(r.name, ''), 1, 200)`;

const orders: Readonly<Record<RoomOrder, RawBuilder<unknown>>> = {
  name,
  alphabetical: name,
  size: sql`r.joined_members`,
  canonical_alias: sql`coalesce(r.canonical_alias, '')`,
  joined_members: sql`r.joined_members`,
  joined_local_members: sql`r.joined_local_members`,
  version: sql`r.version`,
  creator: sql`r.creator`,
  encryption: sql`coalesce(r.encryption, '')`,
  federatable: sql`r.federatable`,
  public: isAmongPublic,
  join_rules: sql`r.join_rule`,
  guest_access: sql`r.guest_can_join`,
  history_visibility: sql`r.history_visibility`,
  state_events: sql`r.state_events`,
};

/** The rooms that match a search term. */
export interface TermMatches {
  readonly total: number;
  /** Their ids; absent if there are more than `maxCollected`. */
  readonly roomIds?: readonly string[];
}

/** Maximum number of rooms whose ids a search collects. A term that more rooms match is common. */
const maxCollected = 2_000;

/** Maximum characters of a term that is probably common: its rooms are counted before their ids are collected. */
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
  /** Resolves when the table of rooms is up to date. */
  readonly #caughtUp: () => Promise<void>;

  constructor(deps: { readonly database: Database; readonly caughtUp: () => Promise<void> }) {
    this.#database = deps.database;
    this.#caughtUp = deps.caughtUp;
  }

  /** @param page `matches`: the result of `search`, or only its total, if the filter has a search term */
  async page(
    filter: RoomFilter,
    order: { readonly by: RoomOrder; readonly backwards: boolean },
    page: { readonly start: PageStart; readonly limit: number; readonly matches?: TermMatches | undefined },
  ): Promise<RowsOfPage<ListedRoom>> {
    await this.#caughtUp();
    const descending = largestFirst.has(order.by) !== order.backwards;
    // The ids of equal rooms have the direction of the order, as at the reference server, so that an index has both.
    const by = { by: orders[order.by], key: sql`r.room_id`, descending, keyDescends: descending };
    const read = (roomIds: readonly string[]) => this.#read(roomIds);
    const rooms = this.#filtered(filter);
    if (filter.searchTerm !== undefined) {
      const { total, roomIds } = page.matches ?? (await this.search(filter));
      if (total === 0) return { rows: [], next: undefined };
      const isRare = total <= maxCollected;
      const found = roomIds ? this.#filtered({}).where('r.room_id', 'in', roomIds) : rooms;
      if (isRare) return readFewByKeys(this.#database, found, by, page, read);
    }
    return readPageByKeys(rooms, by, page, read);
  }

  /** Counts the rooms that the filter selects. */
  count(filter: RoomFilter): Promise<number> {
    return countRows(this.#filtered(filter));
  }

  /** Searches the rooms that the filter selects: collects their ids, or only counts them if they are many. */
  async search(filter: RoomFilter): Promise<TermMatches> {
    await this.#caughtUp();
    const rooms = this.#filtered(filter);
    const isShort = (filter.searchTerm ?? '').length <= shortTerm;
    const counted = isShort ? await countRows(rooms) : 0;
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
    return this.#filtered({})
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
    const rows = await this.#filtered({})
      .selectAll('r')
      .select(isPublic.as('is_public'))
      .where('r.room_id', 'in', roomIds)
      .execute();
    return new Map(rows.map((row) => [row.room_id, row]));
  }

  #filtered({ searchTerm, isPublic: wantsPublic, isEmpty }: RoomFilter) {
    let query = this.#database.scanner<Tables>().selectFrom('room_stats as r');
    if (wantsPublic !== undefined) query = query.where(isPublic, '=', wantsPublic ? 1 : 0);
    if (isEmpty !== undefined) query = query.where('r.joined_members', isEmpty ? '=' : '>', 0);
    if (searchTerm !== undefined) query = query.where(matches(searchTerm));
    return query;
  }
}

function matches(term: string): RawBuilder<boolean> {
  const folded = term.toLowerCase();
  return sql<boolean>`(${containsFolded(sql`r.name`, term)}
    or ${isLike(sql`lower(r.canonical_alias)`, ['#%', folded, '%:%'])}
    or ${contains(sql`r.room_id`, term)})`;
}
