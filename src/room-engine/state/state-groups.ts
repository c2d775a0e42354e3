import { sql } from 'kysely';
import { type Cache, type CacheRegistry, MiB } from '../../kernel/caches/index.ts';
import type { Reader } from '../../kernel/database/index.ts';
import type { TimeSlices } from '../../kernel/time-slices.ts';
import type { RoomRemoval } from '../room-removals.ts';
import type { RoomTables } from '../tables.ts';
import { type ChainLink, GroupChain, type GroupDelta, type GroupRows } from './group-chain.ts';

/** An event nid of 0 in a delta removes the entry. */
const removed = 0;

/** A group of a chain: its id and its number in the chain. */
interface LinkId {
  readonly id: number;
  readonly ordinal: number;
}

/** Maximum number of keys in one query. */
const maxKeys = 2_000;
/** Maximum number of keys that are read with `reader` instead of `scanner`. */
const fewKeys = 50;

/** Maximum number of groups in one query. */
const maxGroups = 200;

/** Maximum number of cached chains. */
const maxChains = 2_000;

/** Estimated bytes of a link of a cached chain. */
const linkBytes = 16;

/** Estimated bytes of an entry of a cached delta. */
const deltaEntryBytes = 60;

/** The entries in which the states of some groups may differ. */
export interface GroupDifferences {
  /** State key nids of the entries that may differ. */
  readonly keys: readonly number[];
  /** Returns the event nid of an entry in the state of a group; 0 when the state has no such entry. */
  entryIn(group: number, key: number): number;
}

export interface StateGroupsDeps {
  readonly reader: Reader<RoomTables>;
  readonly caches: CacheRegistry;
  /** Reads whole states, deltas, and more than `fewKeys` entries at once. */
  readonly scanner: Reader<RoomTables>;
  readonly slices: TimeSlices;
  /** Maximum number of cached single entries. */
  readonly size: number;
}

/** Reads state groups: whole states, single entries, and the chain that the next group is added to. */
export class StateGroups {
  readonly #reader: Reader<RoomTables>;
  readonly #scanner: Reader<RoomTables>;
  readonly #slices: TimeSlices;
  /** `group:key` to event nid, 0 for none. Never stale, because states of groups never change. */
  readonly #entries: Cache<string, number>;
  /** The links of chains, by the id of the newest group; one chain is about a hundred numbers. */
  readonly #chains: Cache<number, readonly LinkId[]>;
  /**
   * The deltas of single groups, by the ids of the group and of its predecessor: a rebased group has another
   * predecessor, and another delta.
   */
  readonly #deltas: Cache<string, GroupDelta>;
  /** Counts the removals of kind `rebased`: a chain that was being read during such a removal is not cached. */
  #rebased = 0;
  /** Groups that are not on disk yet. */
  readonly #unsaved = new Map<number, GroupRows>();

  constructor({ reader, caches, scanner, slices, size }: StateGroupsDeps) {
    this.#reader = reader;
    this.#scanner = scanner;
    this.#slices = slices;
    this.#entries = caches.create('state_group_entries', { size, maxBytes: 8 * MiB });
    this.#chains = caches.create('state_group_chains', {
      size: maxChains,
      maxBytes: 3 * MiB,
      sizeOf: (links) => linkBytes * links.length,
    });
    this.#deltas = caches.create('state_group_deltas', {
      maxBytes: 8 * MiB,
      sizeOf: (delta) => deltaEntryBytes * delta.size,
    });
  }

  /** Adds a group that is about to be written; it stays in memory until `settled`. */
  add(group: GroupRows): void {
    this.#unsaved.set(group.id, group);
  }

  /** Marks a group as written, or as never to be written. */
  settled(group: GroupRows): void {
    this.#unsaved.delete(group.id);
  }

  /** Clears the cached chains when groups of a room are rebased or removed. */
  followRemoval({ kind }: RoomRemoval): void {
    if (kind !== 'rebased') return;
    this.#rebased++;
    this.#chains.clear();
  }

  /** Reads the whole state of a group: state key nid to event nid. */
  async load(group: number): Promise<Map<number, number>> {
    const state = new Map<number, number>();
    for (const link of (await this.#links(group, { withRoot: true })).reverse()) {
      await this.#slices.each(link.delta, ([key, event]) => {
        if (event === removed) state.delete(key);
        else state.set(key, event);
      });
    }
    return state;
  }

  /** Reads the chain that ends in `group`, to add groups to it. */
  async chain(group: number): Promise<GroupChain> {
    return new GroupChain(await this.#links(group, { withRoot: false }));
  }

  /**
   * Returns the entries in which groups may differ: the entries in the deltas that their chains do not share. All other
   * entries are the same in all groups.
   */
  async differences(groups: readonly number[]): Promise<GroupDifferences> {
    const chains = await this.#consistentChains(groups);
    const count = new Map<number, number>();
    for (const chain of chains) for (const { id } of chain) count.set(id, (count.get(id) ?? 0) + 1);
    const isShared = (id: number) => count.get(id) === chains.length;
    const deltas = await this.#deltasOf(chains, (id) => !isShared(id));
    const keys = new Set<number>();
    for (const delta of deltas.values()) await this.#slices.each(delta.keys(), (key) => keys.add(key));
    const changesByGroup = new Map<number, Map<number, number>>();
    for (const [index, chain] of chains.entries()) {
      const changes = new Map<number, number>();
      for (const { id } of chain.toReversed()) {
        await this.#slices.each(deltas.get(id) ?? [], ([key, event]) => changes.set(key, event));
      }
      changesByGroup.set(groups[index] ?? 0, changes);
    }
    const shared = chains[0]?.find(({ id }) => isShared(id))?.id;
    const base = shared === undefined ? undefined : (await this.entries([shared], [...keys])).get(shared);
    return {
      keys: [...keys],
      entryIn: (group, key) => changesByGroup.get(group)?.get(key) ?? base?.get(key) ?? removed,
    };
  }

  /**
   * Returns the chains of groups. A group that is in several chains has the same predecessor in all of them: chains that
   * were read while a group was rebased may differ, so they are read again.
   */
  async #consistentChains(groups: readonly number[]): Promise<(readonly LinkId[])[]> {
    for (;;) {
      const chains = await Promise.all(groups.map((group) => this.#linkIds(group)));
      const before = new Map<number, number>();
      const isConsistent = chains.every((chain) =>
        chain.every(({ id }, index) => {
          const prevId = chain[index + 1]?.id ?? 0;
          const knownPrevId = before.get(id) ?? prevId;
          before.set(id, prevId);
          return knownPrevId === prevId;
        }),
      );
      if (isConsistent) return chains;
      this.#chains.clear();
    }
  }

  /** Returns the wanted deltas of the groups of some chains. */
  async #deltasOf(
    chains: readonly (readonly LinkId[])[],
    isWanted: (id: number) => boolean,
  ): Promise<Map<number, GroupDelta>> {
    const deltas = new Map<number, GroupDelta>();
    const missing: number[] = [];
    const keys = new Map<number, string>();
    for (const chain of chains) {
      for (const [index, { id }] of chain.entries()) {
        if (!isWanted(id) || keys.has(id)) continue;
        const key = `${id}:${chain[index + 1]?.id ?? 0}`;
        keys.set(id, key);
        const cached = this.#unsaved.get(id)?.delta ?? this.#deltas.get(key);
        if (cached) deltas.set(id, cached);
        else missing.push(id);
      }
    }
    for (let start = 0; start < missing.length; start += maxGroups) {
      const groupIds = missing.slice(start, start + maxGroups);
      const rows = await this.#scanner
        .selectFrom('state_groups_state')
        .selectAll()
        .where('group_id', 'in', groupIds)
        .execute();
      const deltasRead = new Map(groupIds.map((id) => [id, new Map<number, number>()]));
      await this.#slices.each(rows, (row) => deltasRead.get(row.group_id)?.set(row.key_nid, row.event_nid));
      for (const [id, delta] of deltasRead) {
        deltas.set(id, delta);
        this.#deltas.set(keys.get(id)!, delta);
      }
    }
    return deltas;
  }

  /**
   * Reads single entries of several groups; entries that are not in memory share queries.
   * @returns group to state key nid to event nid; absent where the state has no such entry.
   */
  async entries(
    groups: Iterable<number>,
    keys: readonly number[],
  ): Promise<ReadonlyMap<number, ReadonlyMap<number, number>>> {
    const groupIds = new Set(groups);
    const entriesByGroup = new Map<number, Map<number, number>>();
    const missing = new Map<number, Set<number>>();
    for (const group of groupIds) {
      const values = new Map<number, number>();
      entriesByGroup.set(group, values);
      await this.#slices.each(keys, (key) => {
        const event = this.#entries.get(`${group}:${key}`);
        if (event === undefined) addTo(missing, group, key);
        else if (event !== removed) values.set(key, event);
      });
    }
    if (missing.size > 0) await this.#addEntries(entriesByGroup, missing);
    return entriesByGroup;
  }

  /**
   * Looks up missing entries in groups in memory and then in the database.
   * @param entriesByGroup receives the entries
   * @param missing the state key nids to look up, by group; those found in memory are removed
   */
  async #addEntries(
    entriesByGroup: ReadonlyMap<number, Map<number, number>>,
    missing: ReadonlyMap<number, Set<number>>,
  ): Promise<void> {
    /**
     * Look-ups on disk, by the group on disk where the search begins. Each has the state key nids to find, and the
     * group in memory or on disk that receives the found entries.
     */
    const lookups = new Map<number, { group: number; keys: Set<number> }[]>();
    const addEntry = (group: number, key: number, event: number) => {
      this.#entries.set(`${group}:${key}`, event);
      if (event !== removed) entriesByGroup.get(group)?.set(key, event);
    };
    for (const [group, keys] of missing) {
      const { deltas, saved } = this.#unsavedLinks(group);
      await this.#slices.each([...keys], (key) => {
        const event = deltas.find((delta) => delta.has(key))?.get(key);
        if (event === undefined && saved !== undefined) return;
        addEntry(group, key, event ?? removed);
        keys.delete(key);
      });
      if (saved !== undefined && keys.size > 0)
        lookups.set(saved, [...(lookups.get(saved) ?? []), { group, keys }]);
    }
    const groups = [...lookups.keys()];
    const keys = [
      ...new Set([...lookups.values()].flatMap((ofGroup) => ofGroup.flatMap((lookup) => [...lookup.keys]))),
    ];
    for (let start = 0; start < groups.length; start += maxGroups) {
      for (let first = 0; first < keys.length; first += maxKeys) {
        const groupChunk = groups.slice(start, start + maxGroups);
        const keyChunk = keys.slice(first, first + maxKeys);
        const values = await this.#fetchEntries(groupChunk, keyChunk);
        for (const saved of groupChunk) {
          for (const { group, keys: wantedKeys } of lookups.get(saved) ?? []) {
            await this.#slices.each(keyChunk, (key) => {
              if (wantedKeys.has(key)) addEntry(group, key, values.get(`${saved}:${key}`) ?? removed);
            });
          }
        }
      }
    }
  }

  /**
   * Reads entries of groups that are on disk.
   * @returns `group:key` to event nid; absent where there is no such entry
   */
  async #fetchEntries(groups: readonly number[], keys: readonly number[]): Promise<Map<string, number>> {
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
      order by chain.distance desc`.execute(keys.length > fewKeys ? this.#scanner : this.#reader);
    const entries = new Map<string, number>();
    await this.#slices.each(rows, (row) => entries.set(`${row.start}:${row.key_nid}`, row.event_nid));
    return entries;
  }

  /**
   * Returns a group and the groups before it that are not on disk, newest first, with their deltas; and the id of the
   * first group that is on disk.
   */
  #unsavedLinks(group: number): { deltas: GroupDelta[]; links: ChainLink[]; saved: number | undefined } {
    const links: GroupRows[] = [];
    let next: number | undefined = group;
    for (
      let rows = this.#unsaved.get(group);
      rows;
      rows = next === undefined ? undefined : this.#unsaved.get(next)
    ) {
      links.push(rows);
      next = rows.prevId;
    }
    return { links, deltas: links.map(({ delta }) => delta), saved: next };
  }

  /** Returns the ids of the groups from `group` back to the root, newest first. */
  async #linkIds(group: number): Promise<readonly LinkId[]> {
    const cached = this.#chains.get(group);
    if (cached) return cached;
    const rebased = this.#rebased;
    const { links, saved } = this.#unsavedLinks(group);
    const ids: LinkId[] = [...links, ...(saved === undefined ? [] : await this.#savedLinkIds(saved))];
    if (rebased === this.#rebased) this.#chains.set(group, ids);
    return ids;
  }

  async #savedLinkIds(group: number): Promise<readonly LinkId[]> {
    const cached = this.#chains.get(group);
    if (cached) return cached;
    const rebased = this.#rebased;
    const { rows } = await sql<{ id: number; ordinal: number }>`
      with recursive chain(id, distance) as (
        select cast(${group} as bigint), 0
        union all
        select edge.prev_id, chain.distance + 1
        from chain join state_group_edges edge on edge.id = chain.id
      )
      select chain.id, grp.ordinal from chain join state_groups grp on grp.id = chain.id
      order by chain.distance`.execute(this.#reader);
    if (rebased === this.#rebased) this.#chains.set(group, rows);
    return rows;
  }

  /** Returns the groups from `group` back to the root, newest first; with `withRoot` false the root has no delta. */
  async #links(group: number, { withRoot }: { withRoot: boolean }): Promise<ChainLink[]> {
    const { links: unsaved, saved } = this.#unsavedLinks(group);
    if (saved === undefined) return unsaved;
    const ids = await this.#savedLinkIds(saved);
    const wantedLinks = withRoot ? ids : ids.filter(({ ordinal }) => ordinal > 0);
    const deltas = new Map<number, Map<number, number>>(ids.map(({ id }) => [id, new Map()]));
    for (let start = 0; start < wantedLinks.length; start += maxGroups) {
      const rows = await this.#scanner
        .selectFrom('state_groups_state')
        .selectAll()
        .where(
          'group_id',
          'in',
          wantedLinks.slice(start, start + maxGroups).map(({ id }) => id),
        )
        .execute();
      await this.#slices.each(rows, (row) => deltas.get(row.group_id)?.set(row.key_nid, row.event_nid));
    }
    return [
      ...unsaved,
      ...ids.map(({ id, ordinal }) => ({ id, ordinal, delta: deltas.get(id) ?? new Map() })),
    ];
  }
}

function addTo(sets: Map<number, Set<number>>, group: number, key: number): void {
  const keys = sets.get(group);
  if (keys) keys.add(key);
  else sets.set(group, new Set([key]));
}
