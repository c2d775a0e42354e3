import { type RawBuilder, sql } from 'kysely';
import type { AccountTables } from '../../accounts/index.ts';
import type { DeviceTables } from '../../devices/index.ts';
import type { DirectoryTables } from '../../directory/index.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { RoomTables } from '../../room-engine/index.ts';
import { contains, isLike } from '../paging/contains.ts';
import type { PageStart } from '../paging/page-cursors.ts';
import { countRows, type RowsOfPage, readPage } from '../paging/read-page.ts';

/** Which rooms a list contains. Absent filters select all rooms. */
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

const name = sql`coalesce(r.name, '')`;

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
  public: isPublic,
  join_rules: sql`r.join_rule`,
  guest_access: sql`r.guest_can_join`,
  history_visibility: sql`r.history_visibility`,
  state_events: sql`r.state_events`,
};

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

  async page(
    filter: RoomFilter,
    order: { readonly by: RoomOrder; readonly backwards: boolean },
    start: PageStart,
    limit: number,
  ): Promise<RowsOfPage<ListedRoom>> {
    await this.#caughtUp();
    const descending = largestFirst.has(order.by) !== order.backwards;
    return readPage(
      this.#filtered(filter).selectAll('r').select(isPublic.as('is_public')),
      { by: orders[order.by], key: sql`r.room_id`, descending },
      start,
      limit,
    );
  }

  /** Counts the rooms that the filter selects. */
  count(filter: RoomFilter): Promise<number> {
    return countRows(this.#filtered(filter));
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
  return sql<boolean>`(${contains(sql`coalesce(r.name, '')`, term)}
    or ${contains(sql`lower(coalesce(r.name, ''))`, folded)}
    or ${isLike(sql`lower(coalesce(r.canonical_alias, ''))`, ['#%', folded, '%:%'])}
    or ${contains(sql`r.room_id`, term)})`;
}
