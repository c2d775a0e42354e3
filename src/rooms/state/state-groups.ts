import { sql } from 'kysely';
import { RecentlyUsed } from '../../kernel/caches/index.ts';
import type { Reader } from '../../kernel/database/index.ts';
import type { RoomTables } from '../tables.ts';
import { type ChainLink, GroupChain } from './group-chain.ts';

/** An event nid of 0 in a delta says that the key was removed. */
const removed = 0;

/** Reads state groups: whole states, single entries, and the chain that the next group is added to. */
export class StateGroups {
  readonly #reader: Reader<RoomTables>;
  /** `group:key` to event nid, 0 for none: groups never change. */
  readonly #entries: RecentlyUsed<string, number>;

  /** @param size how many single entries are kept in memory */
  constructor(reader: Reader<RoomTables>, size: number) {
    this.#reader = reader;
    this.#entries = new RecentlyUsed({ max: size });
  }

  /** The whole state of a group: state key nid to event nid. */
  async load(group: number): Promise<Map<number, number>> {
    const state = new Map<number, number>();
    for (const link of (await this.#links(group)).reverse()) {
      for (const [key, event] of link.delta) {
        if (event === removed) state.delete(key);
        else state.set(key, event);
      }
    }
    return state;
  }

  /** The chain that ends in `group`, to add groups to it. */
  async chain(group: number): Promise<GroupChain> {
    return new GroupChain(await this.#links(group));
  }

  /**
   * Single entries of several groups, with one query for all that are not in memory.
   * @returns group to state key nid to event nid; absent where the state has no such entry.
   */
  async entries(
    groups: Iterable<number>,
    keys: readonly number[],
  ): Promise<ReadonlyMap<number, ReadonlyMap<number, number>>> {
    const wanted = new Set(groups);
    const missing = [...wanted].filter((group) => keys.some((key) => !this.#entries.has(`${group}:${key}`)));
    for (let start = 0; start < missing.length; start += 200) {
      await this.#fetchEntries(missing.slice(start, start + 200), keys);
    }
    const result = new Map<number, Map<number, number>>();
    for (const group of wanted) {
      const found = new Map<number, number>();
      for (const key of keys) {
        const event = this.#entries.get(`${group}:${key}`) ?? removed;
        if (event !== removed) found.set(key, event);
      }
      result.set(group, found);
    }
    return result;
  }

  async #fetchEntries(groups: readonly number[], keys: readonly number[]): Promise<void> {
    const starts = sql.join(
      groups.map((group) => sql`(cast(${group} as bigint), cast(${group} as bigint), 0)`),
    );
    const { rows } = await sql<{ start: number; key_nid: number; event_nid: number; distance: number }>`
      with recursive chain(start, id, distance) as (
        values ${starts}
        union all
        select chain.start, edge.prev_id, chain.distance + 1
        from chain join state_group_edges edge on edge.id = chain.id
      )
      select chain.start, entry.key_nid, entry.event_nid, chain.distance
      from chain join state_groups_state entry on entry.group_id = chain.id
      where entry.key_nid in (${sql.join(keys)})
      order by chain.distance desc`.execute(this.#reader);
    for (const group of groups) {
      for (const key of keys) this.#entries.set(`${group}:${key}`, removed);
    }
    for (const row of rows) this.#entries.set(`${row.start}:${row.key_nid}`, row.event_nid);
  }

  /** The groups from `group` back to the root, newest first. */
  async #links(group: number): Promise<ChainLink[]> {
    const { rows } = await sql<{ id: number; ordinal: number; key_nid: number | null; event_nid: number }>`
      with recursive chain(id, distance) as (
        select cast(${group} as bigint), 0
        union all
        select edge.prev_id, chain.distance + 1
        from chain join state_group_edges edge on edge.id = chain.id
      )
      select chain.id, grp.ordinal, entry.key_nid, entry.event_nid
      from chain
      join state_groups grp on grp.id = chain.id
      left join state_groups_state entry on entry.group_id = chain.id
      order by chain.distance`.execute(this.#reader);
    const links: { id: number; ordinal: number; delta: Map<number, number> }[] = [];
    for (const row of rows) {
      let link = links.at(-1);
      if (link?.id !== row.id) {
        link = { id: row.id, ordinal: row.ordinal, delta: new Map() };
        links.push(link);
      }
      if (row.key_nid !== null) link.delta.set(row.key_nid, row.event_nid);
    }
    return links;
  }
}
