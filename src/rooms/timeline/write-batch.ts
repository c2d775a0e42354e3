import type { SqlValue, Statement } from '../../kernel/database/index.ts';
import { membershipOf, splitStateKey, stateKeyOf } from '../../protocol/index.ts';
import type { IndexBatch } from '../event-relations.ts';
import type { GroupRows } from '../state/group-chain.ts';
import type { StateKeys } from '../state/state-keys.ts';
import type { MembershipChange, RoomFact, StateChange, StoredEvent } from '../stored-event.ts';
import { EventFlag } from '../tables.ts';
import type { Extremity, RoomHead } from './room-head.ts';

/** All that has to be on disk before an event is acknowledged. */
export interface EventWrite {
  readonly head: RoomHead;
  readonly fact: RoomFact;
  /** The room's forward extremities after the event. */
  readonly extremities: readonly Extremity[];
  /** The state group that the event made. */
  readonly group: GroupRows | undefined;
  /** The client's transaction, see `TransactionIds`. */
  readonly transaction?: { readonly scope: number; readonly txnId: string } | undefined;
  /** The event that this one redacts. */
  readonly redacts: StoredEvent | undefined;
  /** Milliseconds since the epoch; set for the first event of a room. */
  readonly roomCreatedTs?: number;
}

const sqlText = {
  room: 'insert into rooms (room_nid, room_id, version, extremities, state_group, created_ts) values (?, ?, ?, ?, ?, ?)',
  roomUpdate: 'update rooms set extremities = ?, state_group = ? where room_nid = ?',
  event:
    'insert into events (nid, event_id, room_nid, depth, stream, state_group, state_before, replaces, flags, redacted_by, json) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
  time: 'insert into event_times (room_nid, ts, nid) values (?, ?, ?)',
  stateKey: 'insert into state_keys (nid, type, state_key) values (?, ?, ?) on conflict (nid) do nothing',
  group: 'insert into state_groups (id, room_nid, ordinal) values (?, ?, ?)',
  edge: 'insert into state_group_edges (id, prev_id) values (?, ?)',
  groupState: 'insert into state_groups_state (group_id, key_nid, event_nid) values (?, ?, ?)',
  current:
    'insert into current_state (room_nid, key_nid, event_nid, membership, stream) values (?, ?, ?, ?, ?) on conflict (room_nid, key_nid) do update set event_nid = excluded.event_nid, membership = excluded.membership, stream = excluded.stream',
  currentRemoval: 'delete from current_state where room_nid = ? and key_nid = ?',
  delta: 'insert into state_deltas (room_nid, stream, key_nid, event_nid) values (?, ?, ?, ?)',
  membership:
    'insert into memberships (user_id, room_nid, membership, event_nid, stream, forgotten) values (?, ?, ?, ?, ?, 0) on conflict (user_id, room_nid) do update set membership = excluded.membership, event_nid = excluded.event_nid, stream = excluded.stream, forgotten = 0',
  renewal: 'update memberships set event_nid = ? where user_id = ? and room_nid = ?',
  transaction: 'insert into event_transactions (scope, event_nid, txn_id) values (?, ?, ?)',
  redacted: 'insert into redacted_events (event_nid, redacted_ts) values (?, ?)',
  redaction: 'update events set redacted_by = ? where nid = ?',
};

type Table = keyof typeof sqlText;

/** Collects the rows of many events; of rows that replace each other only the last is written. */
export class WriteBatch {
  readonly #stateKeys: StateKeys;
  readonly #index: IndexBatch;
  readonly #rows = new Map<Table, SqlValue[][]>();
  readonly #rooms = new Map<number, SqlValue[]>();
  readonly #current = new Map<string, { table: Table; row: SqlValue[] }>();
  readonly #memberships = new Map<string, { table: Table; row: SqlValue[] }>();
  readonly #newKeys = new Set<string>();

  /** @param index further rows about the events */
  constructor(stateKeys: StateKeys, index: IndexBatch) {
    this.#stateKeys = stateKeys;
    this.#index = index;
  }

  /** @param json the PDU as JSON */
  add(write: EventWrite, json: string): void {
    const { head, fact, group } = write;
    const { stored } = fact;
    const { event } = stored;
    const extremities = JSON.stringify(write.extremities.map(({ nid }) => nid));
    const stateGroup = stored.stateGroup ?? null;
    if (write.roomCreatedTs !== undefined) {
      this.#push('room', [
        head.roomNid,
        head.roomId,
        head.version.id,
        extremities,
        stateGroup,
        write.roomCreatedTs,
      ]);
    }
    this.#rooms.set(head.roomNid, [extremities, stateGroup, head.roomNid]);
    this.#push('event', [
      stored.nid,
      event.eventId,
      head.roomNid,
      event.depth,
      stored.stream ?? null,
      stored.stateGroup ?? null,
      stored.stateBefore === stored.stateGroup ? null : (stored.stateBefore ?? null),
      stored.replaces ?? null,
      flagsOf(stored),
      null,
      json,
    ]);
    if (stored.stream !== undefined) this.#push('time', [head.roomNid, event.originServerTs, stored.nid]);
    if (group) this.#addGroup(head.roomNid, group);
    for (const change of fact.stateChanges) this.#addStateChange(write, change);
    for (const change of fact.membershipChanges) this.#addMembershipChange(write, change);
    if (write.transaction) {
      this.#push('transaction', [write.transaction.scope, stored.nid, write.transaction.txnId]);
    }
    if (write.redacts) {
      this.#push('redaction', [stored.nid, write.redacts.nid]);
      this.#push('redacted', [write.redacts.nid, event.originServerTs]);
    }
    this.#index.add(stored, write.redacts);
  }

  /** The rows as statements, in the order in which the tables need them. */
  statements(): Statement[] {
    for (const { table, row } of this.#current.values()) this.#push(table, row);
    for (const { table, row } of this.#memberships.values()) this.#push(table, row);
    for (const row of this.#rooms.values()) this.#push('roomUpdate', row);
    const own = [...this.#rows].map(([table, rows]) => ({ sql: sqlText[table], rows }));
    return [...own, ...this.#index.statements()];
  }

  /** State keys whose rows are part of this batch. */
  get newStateKeys(): Iterable<string> {
    return this.#newKeys;
  }

  #addGroup(roomNid: number, group: GroupRows): void {
    this.#push('group', [group.id, roomNid, group.ordinal]);
    if (group.prevId !== undefined) this.#push('edge', [group.id, group.prevId]);
    for (const [key, event] of group.delta) this.#push('groupState', [group.id, key, event]);
  }

  #addStateChange({ head, fact: { position } }: EventWrite, change: StateChange): void {
    const keyNid = this.#keyNid(stateKeyOf(change.type, change.stateKey));
    const nid = change.event?.nid;
    const isMember = change.type === 'm.room.member';
    const membership = isMember && change.event ? membershipOf(change.event.event.content) : null;
    this.#current.set(`${head.roomNid}:${keyNid}`, {
      table: nid === undefined ? 'currentRemoval' : 'current',
      row: nid === undefined ? [head.roomNid, keyNid] : [head.roomNid, keyNid, nid, membership, position],
    });
    this.#push('delta', [head.roomNid, position, keyNid, nid ?? null]);
  }

  #addMembershipChange({ head, fact }: EventWrite, { userId, from, to, eventNid }: MembershipChange): void {
    const key = `${head.roomNid}:${userId}`;
    const before = this.#memberships.get(key);
    if (from !== 'join' || to !== 'join') {
      const row = [userId, head.roomNid, to, eventNid, fact.position];
      this.#memberships.set(key, { table: 'membership', row });
    } else if (before?.table === 'membership') {
      const [user = userId, room = head.roomNid, membership = to, , stream = fact.position] = before.row;
      before.row = [user, room, membership, eventNid, stream];
    } else this.#memberships.set(key, { table: 'renewal', row: [eventNid, userId, head.roomNid] });
  }

  #keyNid(key: string): number {
    const nid = this.#stateKeys.peek(key);
    if (nid === undefined) throw new Error('a state key was not prepared');
    if (this.#stateKeys.isUnsaved(key) && !this.#newKeys.has(key)) {
      this.#newKeys.add(key);
      this.#push('stateKey', [nid, ...splitStateKey(key)]);
    }
    return nid;
  }

  #push(table: Table, row: SqlValue[]): void {
    const rows = this.#rows.get(table);
    if (rows) rows.push(row);
    else this.#rows.set(table, [row]);
  }
}

function flagsOf(stored: StoredEvent): number {
  return (
    (stored.rejected ? EventFlag.rejected : 0) |
    (stored.softFailed ? EventFlag.softFailed : 0) |
    (stored.stream === undefined ? EventFlag.outlier : 0) |
    (stored.distribute ? EventFlag.distribute : 0)
  );
}
