import { type RawBuilder, sql } from 'kysely';
import type { SenderTables } from '../../federation/index.ts';
import type { DestinationTables } from '../../federation-client/index.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { RoomTables } from '../../room-engine/index.ts';
import type { PageStart } from '../paging/page-cursors.ts';
import { countRows, type RowsOfPage, readPage } from '../paging/read-page.ts';

export const destinationOrders = [
  'destination',
  'retry_last_ts',
  'retry_interval',
  'failure_ts',
  'last_successful_stream_ordering',
] as const;

export type DestinationOrder = (typeof destinationOrders)[number];

/** A server to which this one sends. Times are milliseconds since the epoch. */
export interface ListedDestination {
  readonly destination: string;
  readonly retry_last_ts: number;
  readonly retry_interval: number;
  readonly failure_ts: number | null;
  readonly last_successful_stream_ordering: number | null;
}

type Tables = DestinationTables & SenderTables & RoomTables;

const orders: Readonly<Record<DestinationOrder, RawBuilder<unknown>>> = {
  destination: sql`d.server_name`,
  retry_last_ts: sql`d.retry_last_ts`,
  retry_interval: sql`d.retry_interval`,
  failure_ts: sql`coalesce(d.failure_since, 0)`,
  last_successful_stream_ordering: sql`coalesce(p.stream, 0)`,
};

/** Reads the servers with which this server federates. */
export class DestinationList {
  readonly #database: Database;

  constructor({ database }: { readonly database: Database }) {
    this.#database = database;
  }

  page(
    order: { readonly by: DestinationOrder; readonly descending: boolean },
    start: PageStart,
    limit: number,
  ): Promise<RowsOfPage<ListedDestination>> {
    return readPage(
      this.#selected(),
      { by: orders[order.by], key: orders.destination, descending: order.descending },
      start,
      limit,
    );
  }

  count(): Promise<number> {
    return countRows(this.#database.scanner<Tables>().selectFrom('destinations'));
  }

  async get(serverName: string): Promise<ListedDestination | undefined> {
    return this.#selected().where('d.server_name', '=', serverName).executeTakeFirst();
  }

  /** Reads the rooms in which the server has joined users, each with the newest position that the server has received. */
  rooms(
    serverName: string,
    descending: boolean,
    start: PageStart,
    limit: number,
  ): Promise<RowsOfPage<{ readonly room_id: string; readonly stream_ordering: number }>> {
    const rooms = this.#roomsOf(serverName).select([
      'r.room_id',
      sql<number>`coalesce(
        (select m.arrived_stream from destination_rooms m
          where m.destination = ${serverName} and m.room_nid = r.room_nid),
        (select p.stream from destination_positions p where p.destination = ${serverName}),
        0)`.as('stream_ordering'),
    ]);
    return readPage(rooms, { by: sql`r.room_id`, key: sql`r.room_id`, descending }, start, limit);
  }

  countRooms(serverName: string): Promise<number> {
    return countRows(this.#roomsOf(serverName));
  }

  #roomsOf(serverName: string) {
    const pattern = `%:${serverName.replaceAll(/[\\%_]/g, '\\$&')}`;
    return this.#database
      .scanner<Tables>()
      .selectFrom('rooms as r')
      .where(sql<boolean>`exists (
      select 1 from memberships m where m.room_nid = r.room_nid and m.membership = 'join'
        and m.user_id like ${pattern} escape '\\')`);
  }

  #selected() {
    return this.#database
      .scanner<Tables>()
      .selectFrom('destinations as d')
      .leftJoin('destination_positions as p', 'p.destination', 'd.server_name')
      .select([
        'd.server_name as destination',
        'd.retry_last_ts',
        'd.retry_interval',
        'd.failure_since as failure_ts',
        'p.stream as last_successful_stream_ordering',
      ]);
  }
}
