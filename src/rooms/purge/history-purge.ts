import type { Clock } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { Job, JobAttempt, Jobs } from '../../kernel/jobs/index.ts';
import { type Randomness, randomLetters } from '../../kernel/randomness.ts';
import type { RoomRows } from '../../kernel/slices/index.ts';
import type { StreamWriter } from '../../kernel/streams/index.ts';
import { badJson, invalidParam, MatrixError, notFound, serverOfUser } from '../../protocol/index.ts';
import type { HistoryPlace, RoomHead, RoomTables, RoomWriter, StoredEvent } from '../../room-engine/index.ts';
import * as store from './history-store.ts';

/** Selects the events of a room to delete. */
export interface HistoryPurgeOrder {
  /** Events before this one are deleted. */
  readonly eventId?: string | undefined;
  /**
   * Without `eventId`: events before the newest event that was sent before this time, in milliseconds since the epoch,
   * are deleted.
   */
  readonly ts?: number | undefined;
  /** Whether messages of local users are deleted as well: other servers may not have them. */
  readonly deleteLocalEvents: boolean;
}

export interface HistoryPurgeStatus {
  readonly status: 'active' | 'complete' | 'failed';
  readonly error: string | undefined;
}

export interface HistoryPurgeDeps {
  readonly database: Database;
  readonly streams: StreamWriter;
  readonly clock: Clock;
  readonly jobs: Jobs;
  readonly randomness: Randomness;
  readonly serverName: string;
  readonly engine: RoomWriter;
  /** What the slices store for rooms. */
  readonly rows: readonly RoomRows[];
}

const job = 'rooms/purge-history';

/** Milliseconds for which the status of a finished purge is kept. */
const statusLifetime = 7 * 24 * 3_600_000;

const maxAttempts = 5;

/**
 * Number of events that are read at once and deleted in one transaction, so that other writers are not blocked for
 * long.
 */
const eventsAtOnce = 200;

/** Depths above the bound of a purge that are searched for events whose `prev_events` are deleted. */
const forkDepth = 1_000;

/** The payload of the job: the order and its progress. */
type Progress = {
  readonly roomId: string;
  readonly roomNid: number;
  /** Events below this depth are deleted. */
  readonly depth: number;
  readonly deleteLocalEvents: boolean;
  readonly step: 'timeline' | 'refused' | 'gaps';
  /** The last event that the step has processed; null at its beginning. */
  readonly after:
    | ({ readonly [Name in keyof HistoryPlace]: HistoryPlace[Name] } & { readonly nid: number })
    | null;
};

/**
 * Deletes old messages of rooms for administrators. Keeps state events, state groups, auth chains and forward
 * extremities, so that the room stays writable and other servers can join through this one (decision 0166). A purge is
 * a job, so that it continues after a restart.
 */
export class HistoryPurge {
  readonly #deps: HistoryPurgeDeps;

  /** Registers its job: construct it before jobs are started. */
  constructor(deps: HistoryPurgeDeps) {
    this.#deps = deps;
    deps.jobs.register<Progress>(job, {
      run: (attempt) => this.#run(attempt),
      parallel: 1,
      maxAttempts,
      keep: statusLifetime,
    });
  }

  /**
   * Schedules a purge.
   * @returns its id
   * @throws MatrixError 404 for an unknown event, 400 for an event of another room, for an order without a bound, and
   * while another purge of the room is running
   */
  async schedule(head: RoomHead, order: HistoryPurgeOrder): Promise<string> {
    const { database, jobs, clock, randomness } = this.#deps;
    const { roomId, roomNid } = head;
    const { depth } = (await this.#boundary(head, order)).event;
    if (await this.#isUnderWay(roomId))
      throw new MatrixError(400, 'M_UNKNOWN', `History purge already in progress for ${roomId}`);
    const { deleteLocalEvents } = order;
    const payload: Progress = { roomId, roomNid, depth, deleteLocalEvents, step: 'timeline', after: null };
    const key = randomLetters(randomness, 16);
    await database.transaction((writer) =>
      jobs.schedule(writer, { kind: job, key, payload, runAt: clock.now() }),
    );
    return key;
  }

  /** Returns the status of a purge; `undefined` for unknown ids and a week after the purge finished. */
  async status(id: string): Promise<HistoryPurgeStatus | undefined> {
    const [found] = await this.#deps.jobs.list({ kind: job, key: id, limit: 1 });
    return found && statusOf(found);
  }

  async #boundary({ roomNid }: RoomHead, { eventId, ts }: HistoryPurgeOrder): Promise<StoredEvent> {
    const { engine, database } = this.#deps;
    if (eventId !== undefined) {
      const stored = eventId.includes('\0') ? undefined : await engine.events.getById(eventId);
      if (!stored) throw notFound('Event not found');
      if (stored.roomNid !== roomNid) throw invalidParam('Event is for wrong room.');
      return stored;
    }
    if (ts === undefined) throw badJson('must specify purge_up_to_event_id or purge_up_to_ts');
    const nid = await store.newestBefore(database, roomNid, ts);
    const stored = nid === undefined ? undefined : await engine.events.get(nid);
    if (!stored) throw notFound('there is no event to be purged');
    return stored;
  }

  async #isUnderWay(roomId: string): Promise<boolean> {
    for (let after = 0; ; ) {
      const page = await this.#deps.jobs.list({ kind: job, after, limit: 100 });
      const isOfRoom = ({ payload, state }: Job) =>
        state === 'waiting' && (payload as Progress).roomId === roomId;
      if (page.some(isOfRoom)) return true;
      if (page.length < 100) return false;
      after = page.at(-1)?.id ?? after;
    }
  }

  async #run({ payload, signal, progress }: JobAttempt<Progress>): Promise<Progress> {
    let order = payload;
    for (;;) {
      if (signal.aborted) throw new Error('interrupted');
      const next = await this.#continue(order);
      if (next === undefined) return order;
      order = next;
      await progress(order);
    }
  }

  /** Processes the next events of a step. @returns `undefined` when all steps are done */
  async #continue(order: Progress): Promise<Progress | undefined> {
    const { database, engine } = this.#deps;
    const { step, roomNid, depth, after } = order;
    const head = await engine.heads.get(order.roomId);
    if (head?.roomNid !== roomNid) return undefined;
    if (step === 'refused') {
      const nids = await store.refusedBelow(database, roomNid, depth, after?.nid ?? 0, eventsAtOnce);
      if (nids.length === 0) return { ...order, step: 'gaps', after: null };
      await this.#delete(head, order, nids);
      return { ...order, after: { nid: nids.at(-1)!, depth: 0, stream: 0 } };
    }
    const below = step === 'timeline' ? depth : depth + forkDepth;
    const placed = await store.placedBelow(database, roomNid, below, after, eventsAtOnce);
    const last = placed.at(-1);
    if (!last) return step === 'timeline' ? { ...order, step: 'refused', after: null } : undefined;
    const nids = placed.map(({ nid }) => nid);
    if (step === 'timeline') await this.#delete(head, order, nids);
    else await this.#addGaps(roomNid, nids);
    return { ...order, after: last };
  }

  async #delete(head: RoomHead, order: Progress, nids: readonly number[]): Promise<void> {
    const { database, streams, engine, rows } = this.#deps;
    const events = await this.#deletable(head, order, nids);
    if (events.length === 0) return;
    const deleted = events.map(({ nid }) => nid);
    await streams.write<RoomTables, void>(async (writer, publish) => {
      for (const { deleteForEvents: ofEvents } of rows) await ofEvents?.(writer, deleted, database);
      await store.deleteEvents(writer, order.roomNid, events);
      publish(engine.removals, { kind: 'pruned', eventNids: deleted, roomId: order.roomId });
    });
  }

  /** Returns the messages that may be deleted: no forward extremities, and no redactions of events that are kept. */
  async #deletable(
    { extremities, formerExtremities }: RoomHead,
    { deleteLocalEvents }: Progress,
    nids: readonly number[],
  ): Promise<StoredEvent[]> {
    const { engine, serverName } = this.#deps;
    const ends = new Set([...extremities.map(({ nid }) => nid), ...formerExtremities]);
    const messages = [...(await engine.events.getMany(nids)).values()].filter(
      ({ nid, event }) =>
        event.stateKey === undefined &&
        !ends.has(nid) &&
        (deleteLocalEvents || serverOfUser(event.sender) !== serverName),
    );
    const own = new Set(messages.map(({ event }) => event.eventId));
    // A redaction of an event that is kept is served with it.
    const targets = messages.flatMap(({ event }) => event.redacts ?? []).filter((id) => !own.has(id));
    const kept = await engine.events.getManyById(targets);
    return messages.filter(({ event }) => event.redacts === undefined || !kept.has(event.redacts));
  }

  /** Records the missing `prev_events` of these events as backward extremities. */
  async #addGaps(roomNid: number, nids: readonly number[]): Promise<void> {
    const { database, engine } = this.#deps;
    const namedBy = new Map<string, number>();
    for (const [nid, { event }] of await engine.events.getMany(nids))
      for (const id of event.prevEventIds) namedBy.set(id, nid);
    const ids = [...namedBy.keys()];
    for (let start = 0; start < ids.length; start += eventsAtOnce) {
      const some = ids.slice(start, start + eventsAtOnce);
      for (const id of await store.storedIds(database, some)) namedBy.delete(id);
    }
    if (namedBy.size === 0) return;
    await database.transaction<RoomTables, void>((writer) => store.addGaps(writer, roomNid, namedBy));
  }
}

function statusOf({ state, error }: Job): HistoryPurgeStatus {
  return {
    status: state === 'done' ? 'complete' : state === 'failed' ? 'failed' : 'active',
    error: state === 'failed' ? (error ?? 'unknown') : undefined,
  };
}
