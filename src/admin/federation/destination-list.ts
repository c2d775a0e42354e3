import { type RawBuilder, sql } from 'kysely';
import type { DirectoryTables } from '../../directory/index.ts';
import type { SenderTables } from '../../federation/index.ts';
import type { DestinationTables } from '../../federation-client/index.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { RoomTables } from '../../room-engine/index.ts';
import { contains } from '../paging/contains.ts';
import type { PageStart } from '../paging/page-cursors.ts';
import { countRows, type RowsOfPage, readPage, readPageByKeys } from '../paging/read-page.ts';

export const destinationOrders = [
  'destination',
  'retry_last_ts',
  'retry_interval',
  'next_retry_ts',
  'failure_ts',
  'last_successful_stream_ordering',
] as const;

/** A value of the parameter `order_by`. */
export type DestinationOrder = (typeof destinationOrders)[number];

/** A server that this server has sent requests to. Times and intervals are in milliseconds, times since the epoch. */
export interface ListedDestination {
  readonly destination: string;
  /** Time of the last recorded failure; 0 while the server is reachable. */
  readonly retry_last_ts: number;
  /** The backoff after `retry_last_ts`. */
  readonly retry_interval: number;
  /** Since when the server is unreachable; null while it is reachable. */
  readonly failure_ts: number | null;
  /** Position on the stream of rooms of the newest event that the server has received in order; null before the first. */
  readonly last_successful_stream_ordering: number | null;
}

type Tables = DestinationTables & SenderTables & RoomTables & DirectoryTables;

const orders: Readonly<Record<DestinationOrder, RawBuilder<unknown>>> = {
  destination: sql`d.server_name`,
  retry_last_ts: sql`d.retry_last_ts`,
  retry_interval: sql`d.retry_interval`,
  // The end of the backoff; 0 for servers without a backoff. The reference server does not have this order.
  next_retry_ts: sql`case when d.retry_interval = 0 then 0 else d.retry_last_ts + d.retry_interval end`,
  failure_ts: sql`coalesce(d.failure_since, 0)`,
  last_successful_stream_ordering: sql`coalesce(p.stream, 0)`,
};

/** Reads the servers that this server federates with. */
export class DestinationList {
  readonly #database: Database;
  /** Resolves when the table of the servers in rooms is up to date. */
  readonly #caughtUp: () => Promise<void>;

  constructor(deps: { readonly database: Database; readonly caughtUp: () => Promise<void> }) {
    this.#database = deps.database;
    this.#caughtUp = deps.caughtUp;
  }

  /** @param name a part of the server names; absent: all servers */
  page(
    name: string | undefined,
    order: { readonly by: DestinationOrder; readonly descending: boolean },
    start: PageStart,
    limit: number,
  ): Promise<RowsOfPage<ListedDestination>> {
    return readPage(
      this.#selected(name),
      { by: orders[order.by], key: orders.destination, descending: order.descending },
      start,
      limit,
    );
  }

  count(name: string | undefined): Promise<number> {
    return countRows(this.#named(name));
  }

  async get(serverName: string): Promise<ListedDestination | undefined> {
    return this.#selected(undefined).where('d.server_name', '=', serverName).executeTakeFirst();
  }

  /** Counts the rooms whose newest events the server has not received, and the EDUs that are pending for it. */
  async pending(serverName: string): Promise<{ readonly rooms: number; readonly edus: number }> {
    const tables = this.#database.scanner<Tables>();
    const [rooms, edus] = await Promise.all([
      countRows(tables.selectFrom('destination_rooms').where('destination', '=', serverName)),
      countRows(tables.selectFrom('federation_outbox').where('destination', '=', serverName)),
    ]);
    return { rooms, edus };
  }

  /**
   * Reads the rooms in which the server has joined users, each with the position of the newest event that the server has
   * received; 0 when it has received none.
   */
  async rooms(
    serverName: string,
    descending: boolean,
    start: PageStart,
    limit: number,
  ): Promise<RowsOfPage<{ readonly room_id: string; readonly stream_ordering: number }>> {
    await this.#caughtUp();
    const order = { by: sql`s.room_id`, key: sql`s.room_id`, descending };
    return readPageByKeys(this.#roomsOf(serverName), order, { start, limit }, async (roomIds) => {
      const rows = await this.#roomsOf(serverName)
        .select([
          's.room_id',
          sql<number>`coalesce(
            (select m.arrived_stream from destination_rooms m join rooms r on r.room_nid = m.room_nid
              where m.destination = ${serverName} and r.room_id = s.room_id),
            (select p.stream from destination_positions p where p.destination = ${serverName}),
            0)`.as('stream_ordering'),
        ])
        .where('s.room_id', 'in', roomIds)
        .execute();
      return new Map(rows.map((row) => [row.room_id, row]));
    });
  }

  countRooms(serverName: string): Promise<number> {
    return countRows(this.#roomsOf(serverName));
  }

  #roomsOf(serverName: string) {
    return this.#database
      .scanner<Tables>()
      .selectFrom('room_servers as s')
      .where('s.server_name', '=', serverName);
  }

  #named(name: string | undefined) {
    const all = this.#database.scanner<Tables>().selectFrom('destinations as d');
    return name === undefined ? all : all.where(contains(sql`d.server_name`, name.toLowerCase()));
  }

  #selected(name: string | undefined) {
    return this.#named(name)
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
