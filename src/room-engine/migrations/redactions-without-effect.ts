import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Migration } from '../../kernel/database/index.ts';
import { type RoomEvent, stateMapKey } from '../../protocol/index.ts';
import { EventFlag } from '../tables.ts';
import { parseEvent } from '../timeline/event-row.ts';
import { redactionTakesEffect } from '../timeline/redaction.ts';

interface EventRow {
  readonly nid: number;
  readonly event_id: string;
  readonly json: string;
  readonly version: string;
  readonly flags: number;
  readonly state_group: number | null;
}

type Db = Kysely<never>;

/**
 * Withholds from clients the stored redactions that took no effect (decision 0132), which earlier versions of
 * the server showed. Reads all events once, because no index has the types of events.
 */
export const redactionsWithoutEffectMigration: Migration = {
  name: 'rooms/0014-redactions-without-effect',
  async up({ db }) {
    for (const row of await redactionsWithoutTarget(db)) await withholdWithoutEffect(db, row);
  },
};

const columns = sql`e.nid, e.event_id, e.json, r.version, e.flags, coalesce(e.state_before, e.state_group) as state_group`;

const isSet = (flag: number): RawBuilder<boolean> => sql<boolean>`(e.flags & ${sql.lit(flag)}) <> 0`;

/** Reads the redactions that clients see on timelines and that are not the `redacted_by` of any event. */
async function redactionsWithoutTarget(db: Db): Promise<readonly EventRow[]> {
  const { rows } = await sql<EventRow>`
    select ${columns} from events e join rooms r on r.room_nid = e.room_nid
    where e.json like '%"m.room.redaction"%' and e.stream is not null and not ${isSet(EventFlag.withheld)}
      and e.nid not in (select redacted_by from events where redacted_by is not null)
    order by e.nid`.execute(db);
  return rows;
}

async function withholdWithoutEffect(db: Db, row: EventRow): Promise<void> {
  const redaction = eventOf(row);
  if (redaction.type !== 'm.room.redaction') return;
  const { redacts } = redaction;
  const target = redacts === undefined ? undefined : await findEvent(db, sql`e.event_id = ${redacts}`);
  if (target && (await isEffective(db, row, redaction, target))) return;
  const nid = sql.lit(row.nid);
  await sql`delete from event_times where nid = ${nid}`.execute(db);
  await sql`update events set flags = flags + ${sql.lit(EventFlag.withheld)} where nid = ${nid}`.execute(db);
  if (target || redacts === undefined) return;
  await sql`
    insert into pending_redactions (target_id, redaction_nid) values (${redacts}, ${nid})
    on conflict (target_id, redaction_nid) do nothing`.execute(db);
}

/**
 * Returns whether the redaction was allowed: then it took effect, or an earlier redaction of the same target took
 * effect.
 */
async function isEffective(db: Db, row: EventRow, redaction: RoomEvent, target: EventRow): Promise<boolean> {
  if ((target.flags & EventFlag.rejected) !== 0) return false;
  const state = new Map<string, RoomEvent>();
  for (const type of ['m.room.create', 'm.room.power_levels']) {
    const entry = row.state_group === null ? undefined : await findEntry(db, row.state_group, type);
    if (entry) state.set(stateMapKey(type, ''), eventOf(entry));
  }
  return redactionTakesEffect(redaction, eventOf(target), (type, key) => state.get(stateMapKey(type, key)));
}

/**
 * Reads the state event with this type and an empty state key in a state group. Follows the chain of deltas of the
 * group back to the first delta that has such an entry.
 */
async function findEntry(db: Db, group: number, type: string): Promise<EventRow | undefined> {
  const { rows } = await sql<{ event_nid: number }>`
    with recursive chain (id, step) as (
      select s.id, 0 from state_groups s where s.id = ${sql.lit(group)}
      union all
      select edge.prev_id, chain.step + 1 from chain join state_group_edges edge on edge.id = chain.id
    )
    select s.event_nid from chain
    join state_groups_state s on s.group_id = chain.id
    join state_keys k on k.nid = s.key_nid and k.type = ${type} and k.state_key = ''
    order by chain.step limit 1`.execute(db);
  const [entry] = rows;
  return entry && findEvent(db, sql`e.nid = ${sql.lit(entry.event_nid)}`);
}

async function findEvent(db: Db, condition: RawBuilder<unknown>): Promise<EventRow | undefined> {
  const { rows } = await sql<EventRow>`
    select ${columns} from events e join rooms r on r.room_nid = e.room_nid where ${condition}`.execute(db);
  return rows[0];
}

const eventOf = ({ json, version, event_id }: EventRow): RoomEvent => parseEvent(json, version, event_id);
