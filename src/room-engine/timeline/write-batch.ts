import type { SqlValue, Statement } from '../../kernel/database/index.ts';
import { membershipOf, splitStateMapKey, stateMapKey } from '../../protocol/index.ts';
import type { IndexBatch } from '../event-index.ts';
import type { GroupRows } from '../state/group-chain.ts';
import type { WritableStateKeys } from '../state/writable-state-keys.ts';
import type { MembershipChange, RoomFact, StateChange, StoredEvent } from '../stored-event.ts';
import { type EventWrite, flagsOf, type RemoteWrite } from './event-write.ts';

/** The statement for each kind of row, in the order of execution. */
const sqlText = {
  room: 'insert into rooms (room_nid, room_id, version, extremities, state_group, created_ts) values (?, ?, ?, ?, ?, ?)',
  roomUpdate: 'update rooms set extremities = ?, state_group = ? where room_nid = ?',
  partialState: 'update rooms set partial_state = ? where room_nid = ?',
  formerExtremities: 'update rooms set former_extremities = ? where room_nid = ?',
  event:
    'insert into events (nid, event_id, room_nid, depth, stream, state_group, state_before, replaces, flags, redacted_by, json) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
  eventUpdate:
    'update events set stream = ?, state_group = ?, state_before = ?, replaces = ?, flags = ?, redacted_by = ? where nid = ?',
  eventRevision:
    'update events set stream = ?, state_group = ?, state_before = ?, replaces = ?, flags = ? where nid = ?',
  outside:
    'insert into outside_events (nid, room_nid, event_id, user_id, server, version, json) values (?, ?, ?, ?, ?, ?, ?)',
  place: 'insert into event_places (position, nid) values (?, ?)',
  time: 'insert into event_times (room_nid, ts, nid) values (?, ?, ?)',
  auth: 'insert into event_auth (event_nid, auth_nid) values (?, ?) on conflict (event_nid, auth_nid) do nothing',
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
  membershipEvent: 'update memberships set event_nid = ? where user_id = ? and room_nid = ?',
  stripped:
    'insert into stripped_state (room_nid, user_id, json) values (?, ?, ?) on conflict (room_nid, user_id) do update set json = excluded.json',
  strippedRemoval: 'delete from stripped_state where room_nid = ? and user_id = ?',
  backward:
    'insert into backward_extremities (room_nid, event_id, backfills_left, referenced_by) values (?, ?, ?, ?) on conflict (room_nid, event_id) do update set backfills_left = excluded.backfills_left, referenced_by = excluded.referenced_by, attempts = 0, retry_ts = 0 where excluded.backfills_left is not null and backward_extremities.backfills_left is null',
  backwardRemoval: 'delete from backward_extremities where room_nid = ? and event_id = ?',
  transaction: 'insert into event_transactions (scope, event_nid, txn_id) values (?, ?, ?)',
  redacted:
    'insert into redacted_events (event_nid, redacted_ts) values (?, ?) on conflict (event_nid) do nothing',
  redaction: 'update events set redacted_by = ? where nid = ?',
  pendingRedaction:
    'insert into pending_redactions (target_id, redaction_nid) values (?, ?) on conflict (target_id, redaction_nid) do nothing',
  pendingRemoval: 'delete from pending_redactions where target_id = ?',
};

type RowKind = keyof typeof sqlText;

const rowKinds = Object.keys(sqlText) as RowKind[];

/** The kinds of rows of state groups, in the order of execution. */
const groupRowKinds: readonly RowKind[] = ['group', 'edge', 'groupState'];

/** Collects the rows of many events; when rows replace each other, only the last row is written. */
export class WriteBatch {
  readonly #stateKeys: WritableStateKeys;
  readonly #index: IndexBatch;
  readonly #separatesGroups: boolean;
  readonly #rows = new Map<RowKind, SqlValue[][]>();
  /** The newest row of kind `roomUpdate` of each room, by room nid. */
  readonly #rooms = new Map<number, SqlValue[]>();
  /** The newest of the rows that replace each other, by table and key. */
  readonly #replaceableRows = new Map<string, { kind: RowKind; row: SqlValue[] }>();
  /** The newest row of each membership that has changed, by room and user. */
  readonly #memberships = new Map<string, { kind: RowKind; row: SqlValue[] }>();
  readonly #newKeys = new Set<string>();

  /**
   * @param index collects the rows of the index of events (`EventIndex`)
   * @param separatesGroups whether `statements` leaves out the rows of state groups, which have a database of their own
   */
  constructor(stateKeys: WritableStateKeys, index: IndexBatch, separatesGroups = false) {
    this.#separatesGroups = separatesGroups;
    this.#stateKeys = stateKeys;
    this.#index = index;
  }

  /**
   * Adds the rows of an event; yields between steps when the event has many rows.
   * @param json the PDU as JSON
   */
  *add(write: EventWrite, json: string): Generator<void> {
    const { head, stored, fact, end } = write;
    const extremities = JSON.stringify(end?.extremities.map(({ nid }) => nid) ?? []);
    const stateGroup = end?.group ?? null;
    if (write.roomCreatedTs !== undefined) {
      const { roomNid, roomId, version } = head;
      this.#push('room', [roomNid, roomId, version.id, extremities, stateGroup, write.roomCreatedTs]);
    }
    if (end) this.#rooms.set(head.roomNid, [extremities, stateGroup, head.roomNid]);
    this.#addEvent(write, json);
    for (const group of write.groups) yield* this.#addGroup(head.roomNid, group);
    if (write.remote) yield* this.#addRemote(write, write.remote);
    if (fact) {
      const { stateChanges, membershipChanges } = fact;
      yield* inSteps(stateChanges, (change) => this.#addStateChange(head.roomNid, fact, change));
      yield* inSteps(membershipChanges, (change) => this.#addMembershipChange(head.roomNid, fact, change));
    }
    if (write.transaction) {
      this.#push('transaction', [write.transaction.scope, stored.nid, write.transaction.txnId]);
    }
    if (write.redacts) {
      this.#push('redaction', [stored.nid, write.redacts.nid]);
      this.#push('redacted', [write.redacts.nid, stored.event.originServerTs]);
    }
  }

  /** Returns the rows as statements, in the order that the tables need. */
  *statements(): Generator<void, Statement[]> {
    yield* inSteps(this.#replaceableRows.values(), ({ kind, row }) => this.#push(kind, row));
    yield* inSteps(this.#memberships.values(), ({ kind, row }) => this.#push(kind, row));
    for (const row of this.#rooms.values()) this.#push('roomUpdate', row);
    const statements: Statement[] = [];
    for (const kind of rowKinds) {
      if (this.#separatesGroups && groupRowKinds.includes(kind)) continue;
      const rows = this.#rows.get(kind);
      if (rows) statements.push({ sql: sqlText[kind], rows });
    }
    return [...statements, ...this.#index.statements()];
  }

  /**
   * Returns the rows of state groups as statements for their own database. They may be written again when writing the
   * events has failed: a group never changes.
   */
  groupStatements(): Statement[] {
    return groupRowKinds.flatMap((kind) => {
      const rows = this.#rows.get(kind);
      return rows ? [{ sql: `${sqlText[kind]} on conflict do nothing`, rows }] : [];
    });
  }

  /** State keys whose rows are part of this batch. */
  get newStateKeys(): Iterable<string> {
    return this.#newKeys;
  }

  #addEvent({ head, stored, rowAction, auth, redacts, remote }: EventWrite, json: string): void {
    if (rowAction === 'untouched') return;
    const { event } = stored;
    if (rowAction === 'outside') {
      const { eventId, stateKey = '', version } = event;
      const server = remote?.server ?? '';
      this.#push('outside', [stored.nid, head.roomNid, eventId, stateKey, server, version.id, json]);
      return;
    }
    const changeable = [...columnsOf(stored), stored.redactedBy ?? null];
    if (rowAction === 'new')
      this.#push('event', [stored.nid, event.eventId, head.roomNid, event.depth, ...changeable, json]);
    else this.#push('eventUpdate', [...changeable, stored.nid]);
    for (const nid of auth) this.#push('auth', [stored.nid, nid]);
    if (stored.stream === undefined || stored.withheld) return;
    this.#push('time', [head.roomNid, event.originServerTs, stored.nid]);
    this.#index.add(stored, redacts);
  }

  *#addGroup(roomNid: number, group: GroupRows): Generator<void> {
    this.#push('group', [group.id, roomNid, group.ordinal]);
    if (group.prevId !== undefined) this.#push('edge', [group.id, group.prevId]);
    yield* inSteps(group.delta, ([key, event]) => this.#push('groupState', [group.id, key, event]));
  }

  *#addRemote({ head: { roomNid }, stored }: EventWrite, remote: RemoteWrite): Generator<void> {
    yield* inSteps(remote.stateKeys ?? [], (key) => {
      if (this.#stateKeys.isUnsaved(key)) this.#keyNid(key);
    });
    // `redacted_by` is left out, because a concurrent redaction writes it.
    yield* inSteps(remote.revised?.values() ?? [], (revised) =>
      this.#push('eventRevision', [...columnsOf(revised), revised.nid]),
    );
    if (remote.place !== undefined) this.#push('place', [remote.place, stored.nid]);
    for (const eventId of remote.missing ?? []) this.#addMissing(roomNid, eventId, stored.nid, remote);
    if (remote.fillsGap) {
      const { eventId } = stored.event;
      this.#replaceRow('backward', eventId, 'backwardRemoval', [roomNid, eventId]);
    }
    if (remote.pendingTarget !== undefined) {
      this.#push('pendingRedaction', [remote.pendingTarget, stored.nid]);
    }
    if (remote.redactedTs !== undefined) {
      this.#push('redacted', [stored.nid, remote.redactedTs]);
      this.#push('pendingRemoval', [stored.event.eventId]);
    }
    for (const [userId, json] of remote.stripped ?? []) {
      const key = `${roomNid}:${userId}`;
      if (json === undefined) this.#replaceRow('stripped', key, 'strippedRemoval', [roomNid, userId]);
      else this.#replaceRow('stripped', key, 'stripped', [roomNid, userId, json]);
    }
    if (remote.formerExtremities)
      this.#push('formerExtremities', [JSON.stringify(remote.formerExtremities), roomNid]);
    if (remote.partialState !== undefined) this.#push('partialState', [remote.partialState, roomNid]);
  }

  #addMissing(roomNid: number, eventId: string, referencedBy: number, { backfillsLeft }: RemoteWrite): void {
    const previous = this.#replaceableRows.get(`backward:${eventId}`);
    if (backfillsLeft === undefined && previous?.kind === 'backward') return;
    this.#replaceRow('backward', eventId, 'backward', [
      roomNid,
      eventId,
      backfillsLeft ?? null,
      referencedBy,
    ]);
  }

  #addStateChange(roomNid: number, { position }: RoomFact, change: StateChange): void {
    const keyNid = this.#keyNid(stateMapKey(change.type, change.stateKey), change.keyNid);
    const nid = change.event?.nid;
    const isMember = change.type === 'm.room.member';
    const membership = isMember && change.event ? membershipOf(change.event.event.content) : null;
    const key = `${roomNid}:${keyNid}`;
    if (nid === undefined) this.#replaceRow('current', key, 'currentRemoval', [roomNid, keyNid]);
    else this.#replaceRow('current', key, 'current', [roomNid, keyNid, nid, membership, position]);
    this.#push('delta', [roomNid, position, keyNid, nid ?? null]);
  }

  #addMembershipChange(
    roomNid: number,
    fact: RoomFact,
    { userId, from, to, eventNid }: MembershipChange,
  ): void {
    const key = `${roomNid}:${userId}`;
    const previous = this.#memberships.get(key);
    if (from !== 'join' || to !== 'join') {
      const row = [userId, roomNid, to, eventNid, fact.position];
      this.#memberships.set(key, { kind: 'membership', row });
    } else if (previous?.kind === 'membership') {
      // The user joined in this batch and then changed the profile: only the nid of the event differs in the row.
      const [user = userId, room = roomNid, membership = to, , stream = fact.position] = previous.row;
      previous.row = [user, room, membership, eventNid, stream];
    } else {
      // A joined user changes the profile: only the nid of the event changes.
      this.#memberships.set(key, { kind: 'membershipEvent', row: [eventNid, userId, roomNid] });
    }
  }

  #keyNid(key: string, knownNid?: number): number {
    const nid = knownNid ?? this.#stateKeys.peek(key);
    if (nid === undefined) throw new Error('a state key has no nid: prepare() was not called');
    if (this.#stateKeys.isUnsaved(key) && !this.#newKeys.has(key)) {
      this.#newKeys.add(key);
      this.#push('stateKey', [nid, ...splitStateMapKey(key)]);
    }
    return nid;
  }

  /** Sets the row that is written for a key. The key is unique within `table`. */
  #replaceRow(table: string, key: string, kind: RowKind, row: SqlValue[]): void {
    this.#replaceableRows.set(`${table}:${key}`, { kind, row });
  }

  #push(kind: RowKind, row: SqlValue[]): void {
    const rows = this.#rows.get(kind);
    if (rows) rows.push(row);
    else this.#rows.set(kind, [row]);
  }
}

/** The columns of an event that change when it is placed or revised. */
const columnsOf = (stored: StoredEvent) => [
  stored.stream ?? null,
  stored.stateGroup ?? null,
  stored.stateBefore === stored.stateGroup ? null : (stored.stateBefore ?? null),
  stored.replaces ?? null,
  flagsOf(stored),
];

/** Number of rows that are added between two yields. */
const rowsAtOnce = 100;

function* inSteps<T>(items: Iterable<T>, step: (item: T) => void): Generator<void> {
  let processed = 0;
  for (const item of items) {
    step(item);
    if (++processed % rowsAtOnce === 0) yield;
  }
}
