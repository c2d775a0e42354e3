import type { Database } from '../../kernel/database/index.ts';
import type { JobAttempt } from '../../kernel/jobs/index.ts';
import type { PurgedRoom, RoomRows } from '../../kernel/slices/index.ts';
import type { StreamWriter } from '../../kernel/streams/index.ts';
import { serverOfUser } from '../../protocol/index.ts';
import type { HistoryPlace, RoomHead, RoomTables, RoomWriter, StoredEvent } from '../../room-engine/index.ts';
import * as store from './history-store.ts';
import type { PurgeMetrics } from './purge-metrics.ts';

export interface HistoryDeletionDeps {
  readonly database: Database;
  readonly streams: StreamWriter;
  readonly serverName: string;
  readonly engine: RoomWriter;
  /** The rows that slices store for events of rooms. */
  readonly rows: readonly RoomRows[];
  readonly metrics: PurgeMetrics;
  /** Called at the end of each deletion, when all its messages are deleted. */
  readonly onEnd: (room: PurgedRoom) => Promise<void>;
}

/** Number of events that are deleted in one transaction, so that other writers are not blocked for long. */
const eventsAtOnce = 200;

/** Depths above the bound of a deletion that are searched for events whose `prev_events` are deleted. */
const forkDepth = 1_000;

/** The payload of a job that deletes messages of a room: the selection of messages, and the progress. */
export type DeletionProgress = {
  readonly roomId: string;
  readonly roomNid: number;
  /** Events below this depth are deleted. */
  readonly depth: number;
  /** Only events are deleted that were sent before this time, in milliseconds since the epoch. Absent: all. */
  readonly sentBefore?: number;
  /** The place after which the deletion begins. Absent: the beginning of the room. */
  readonly start?: { readonly [Name in keyof HistoryPlace]: HistoryPlace[Name] };
  readonly deleteLocalEvents: boolean;
  readonly step: 'timeline' | 'refused' | 'gaps';
  /** The last event that the step has processed; null at its beginning. */
  readonly after:
    | ({ readonly [Name in keyof HistoryPlace]: HistoryPlace[Name] } & { readonly nid: number })
    | null;
};

type DeletionAttempt = Pick<JobAttempt<DeletionProgress>, 'payload' | 'signal' | 'progress'>;

/**
 * Deletes old messages of rooms in small transactions. Keeps state events, state groups, auth chains and forward
 * extremities, so that the room stays writable and other servers can join through this one (decision 0166).
 */
export class HistoryDeletion {
  readonly #deps: HistoryDeletionDeps;

  constructor(deps: HistoryDeletionDeps) {
    this.#deps = deps;
  }

  /** Runs a job. Continues after the last transaction of an earlier attempt. @returns the progress at the end */
  run(attempt: DeletionAttempt): Promise<DeletionProgress> {
    return this.#deps.database.inBackground(() => this.#run(attempt));
  }

  async #run({ payload, signal, progress }: DeletionAttempt): Promise<DeletionProgress> {
    let order = payload;
    for (;;) {
      if (signal.aborted) throw new Error('Interrupted because the server stops');
      const next = await this.#continue(order);
      if (next === undefined) {
        await this.#deps.onEnd(order);
        return order;
      }
      order = next;
      await progress(order);
    }
  }

  /** Processes the next events of a step. @returns `undefined` when all steps are done */
  async #continue(order: DeletionProgress): Promise<DeletionProgress | undefined> {
    const { database, engine } = this.#deps;
    const { step, roomNid, depth, after } = order;
    const head = await engine.heads.get(order.roomId);
    if (head?.roomNid !== roomNid) return undefined;
    if (step === 'refused') {
      const nids = await store.refusedBelow(database, roomNid, depth, after?.nid ?? 0, eventsAtOnce);
      if (nids.length === 0) return { ...order, step: 'gaps', after: null };
      await this.#delete(head, order, nids, []);
      return { ...order, after: { nid: nids.at(-1)!, depth: 0, stream: 0 } };
    }
    const placed = await this.#nextTimelineEvents(
      order,
      after,
      step === 'timeline' ? depth : depth + forkDepth,
    );
    const last = placed.at(-1);
    if (!last) return step === 'timeline' ? { ...order, step: 'refused', after: null } : undefined;
    const nids = placed.map(({ nid }) => nid);
    if (step === 'timeline') {
      const ahead = await this.#nextTimelineEvents(order, last, depth + forkDepth);
      await this.#delete(
        head,
        order,
        nids,
        ahead.map(({ nid }) => nid),
      );
    } else await this.#addGaps(roomNid, nids);
    return { ...order, after: last };
  }

  #nextTimelineEvents(
    { roomNid, start }: DeletionProgress,
    after: HistoryPlace | null,
    below: number,
  ): Promise<store.PlacedNid[]> {
    return store.placedBelow(this.#deps.database, roomNid, below, after ?? start ?? null, eventsAtOnce);
  }

  /**
   * Deletes the events among `nids` that may be deleted. The same transaction records the missing `prev_events` of the
   * remaining events as gaps, so that the history can be backfilled even if the job fails later.
   * @param ahead nids of the next events of the timeline
   */
  async #delete(
    head: RoomHead,
    order: DeletionProgress,
    nids: readonly number[],
    ahead: readonly number[],
  ): Promise<void> {
    const { database, streams, engine, rows, metrics } = this.#deps;
    const found = await engine.events.getMany([...nids, ...ahead]);
    const events = await this.#deletable(
      head,
      order,
      nids.map((nid) => found.get(nid)).filter((one) => one !== undefined),
    );
    for (const { nid } of events) found.delete(nid);
    const gaps = await this.#gapsBefore(
      [...found.values()],
      new Set(events.map(({ event }) => event.eventId)),
    );
    if (events.length === 0 && gaps.size === 0) return;
    const count = await streams.write<RoomTables, number>(async (writer, publish) => {
      // Reads the stored extremities, because those in memory may belong to events whose write can still fail.
      const extremities = await store.storedExtremities(writer, order.roomNid);
      const removed = events.filter(({ nid }) => !extremities.has(nid));
      const eventNids = removed.map(({ nid }) => nid);
      if (removed.length > 0) {
        for (const { deleteForEvents: ofEvents } of rows) await ofEvents?.(writer, eventNids, database);
        await store.deleteEvents(writer, order.roomNid, removed);
        publish(engine.removals, { kind: 'pruned', eventNids, roomId: order.roomId });
      }
      const added = new Map(gaps);
      for (const { nid, event } of events) if (extremities.has(nid)) added.delete(event.eventId);
      if (added.size > 0) await store.addGaps(writer, order.roomNid, added);
      return removed.length;
    });
    metrics.deleted(order.sentBefore === undefined ? 'administrator' : 'retention', count);
  }

  /**
   * Returns the messages that may be deleted. Forward extremities are kept, and so are redactions of events that are kept,
   * unless the messages have expired.
   */
  async #deletable(
    { extremities, formerExtremities }: RoomHead,
    { deleteLocalEvents, sentBefore }: DeletionProgress,
    events: readonly StoredEvent[],
  ): Promise<StoredEvent[]> {
    const { engine, serverName } = this.#deps;
    const kept = new Set([...extremities.map(({ nid }) => nid), ...formerExtremities]);
    const messages = events.filter(
      ({ nid, event }) =>
        event.stateKey === undefined &&
        !kept.has(nid) &&
        (sentBefore === undefined || event.originServerTs < sentBefore) &&
        (deleteLocalEvents || serverOfUser(event.sender) !== serverName),
    );
    // Expired messages are deleted without exception.
    if (sentBefore !== undefined) return messages;
    const own = new Set(messages.map(({ event }) => event.eventId));
    // A redaction of an event that is kept is served with it.
    const targets = messages.flatMap(({ event }) => event.redacts ?? []).filter((id) => !own.has(id));
    const found = await engine.events.getManyById(targets);
    return messages.filter(({ event }) => event.redacts === undefined || !found.has(event.redacts));
  }

  /**
   * Returns the `prev_events` of timeline events that are missing or about to be deleted: by event id, the nid of an event
   * that names it.
   */
  async #gapsBefore(
    events: readonly StoredEvent[],
    deleted: ReadonlySet<string>,
  ): Promise<Map<string, number>> {
    const { database } = this.#deps;
    const stored = new Set(events.map(({ event }) => event.eventId));
    const namedBy = new Map<string, number>();
    for (const { nid, stream, event } of events) {
      if (stream === undefined) continue;
      for (const id of event.prevEventIds) if (!stored.has(id)) namedBy.set(id, nid);
    }
    const unknown = [...namedBy.keys()].filter((id) => !deleted.has(id));
    for (let start = 0; start < unknown.length; start += eventsAtOnce) {
      const some = unknown.slice(start, start + eventsAtOnce);
      for (const id of await store.storedIds(database, some)) namedBy.delete(id);
    }
    return namedBy;
  }

  /** Records the missing `prev_events` of these events as backward extremities. */
  async #addGaps(roomNid: number, nids: readonly number[]): Promise<void> {
    const { database, engine } = this.#deps;
    const gaps = await this.#gapsBefore([...(await engine.events.getMany(nids)).values()], new Set());
    if (gaps.size === 0) return;
    await database.transaction<RoomTables, void>((writer) => store.addGaps(writer, roomNid, gaps));
  }
}
