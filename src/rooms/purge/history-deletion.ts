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
  /** Called at the end of each deletion: all its messages are deleted, or its room is gone. */
  readonly onEnd: (room: PurgedRoom) => Promise<void>;
}

/** Number of events that are deleted in one transaction, so that other writers are not blocked for long. */
const eventsAtOnce = 200;

/** Events with deleted `prev_events` are searched up to this number of depths above the depth of a deletion. */
const forkDepth = 1_000;

/** The payload of a job that deletes messages of a room: the selection of messages, and the progress. */
export type DeletionProgress = {
  readonly roomId: string;
  readonly roomNid: number;
  /** Messages below this depth are deleted. */
  readonly depth: number;
  /**
   * Only messages that were sent before this time, in milliseconds since the epoch, are deleted. Absent: no time limit.
   */
  readonly sentBefore?: number;
  /** The deletion begins after this place. Absent: at the beginning of the room. */
  readonly start?: { readonly [Name in keyof HistoryPlace]: HistoryPlace[Name] };
  /** Whether messages of local users are deleted, too. */
  readonly deleteLocalEvents: boolean;
  /**
   * The steps run in this order: `timeline` deletes messages of the timeline, `refused` deletes rejected and
   * soft-failed messages, and `gaps` records the missing `prev_events` of the remaining events.
   */
  readonly step: 'timeline' | 'refused' | 'gaps';
  /** The last event that the step has processed; null at its beginning. */
  readonly after:
    | ({ readonly [Name in keyof HistoryPlace]: HistoryPlace[Name] } & { readonly nid: number })
    | null;
};

type DeletionAttempt = Pick<JobAttempt<DeletionProgress>, 'payload' | 'signal' | 'progress'>;

/**
 * Deletes old messages of rooms in small transactions. Keeps state events, state groups, auth chains and forward
 * extremities, so that the room stays writable and other servers can join through this server (decision 0166).
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
    let deletion = payload;
    for (;;) {
      signal.throwIfAborted();
      const next = await this.#continue(deletion);
      if (next === undefined) {
        await this.#deps.onEnd(deletion);
        return deletion;
      }
      deletion = next;
      await progress(deletion);
    }
  }

  /** Processes the next events of a step. @returns `undefined` when all steps are done or the room is gone */
  async #continue(deletion: DeletionProgress): Promise<DeletionProgress | undefined> {
    const { database, engine } = this.#deps;
    const { step, roomNid, depth, after } = deletion;
    const head = await engine.heads.get(deletion.roomId);
    if (head?.roomNid !== roomNid) return undefined;
    if (step === 'refused') {
      const nids = await store.refusedBelow(database, roomNid, depth, after?.nid ?? 0, eventsAtOnce);
      if (nids.length === 0) return { ...deletion, step: 'gaps', after: null };
      await this.#delete(head, deletion, nids, []);
      return { ...deletion, after: { nid: nids.at(-1)!, depth: 0, stream: 0 } };
    }
    const placed = await this.#nextTimelineEvents(
      deletion,
      after,
      step === 'timeline' ? depth : depth + forkDepth,
    );
    const last = placed.at(-1);
    if (!last) return step === 'timeline' ? { ...deletion, step: 'refused', after: null } : undefined;
    const nids = placed.map(({ nid }) => nid);
    if (step === 'timeline') {
      const nextEvents = await this.#nextTimelineEvents(deletion, last, depth + forkDepth);
      await this.#delete(
        head,
        deletion,
        nids,
        nextEvents.map(({ nid }) => nid),
      );
    } else await this.#addGaps(roomNid, nids);
    return { ...deletion, after: last };
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
   * @param nextNids nids of the next events of the timeline
   */
  async #delete(
    head: RoomHead,
    deletion: DeletionProgress,
    nids: readonly number[],
    nextNids: readonly number[],
  ): Promise<void> {
    const { database, streams, engine, rows, metrics } = this.#deps;
    const eventsByNid = await engine.events.getMany([...nids, ...nextNids]);
    const events = await this.#deletable(
      head,
      deletion,
      nids.map((nid) => eventsByNid.get(nid)).filter((stored) => stored !== undefined),
    );
    for (const { nid } of events) eventsByNid.delete(nid);
    const gaps = await this.#gapsBefore(
      [...eventsByNid.values()],
      new Set(events.map(({ event }) => event.eventId)),
    );
    if (events.length === 0 && gaps.size === 0) return;
    const count = await streams.write<RoomTables, number>(async (writer, publish) => {
      // Reads the stored extremities, because the extremities in memory may belong to events whose write can still
      // fail.
      const extremities = await store.storedExtremities(writer, deletion.roomNid);
      const removed = events.filter(({ nid }) => !extremities.has(nid));
      const eventNids = removed.map(({ nid }) => nid);
      if (removed.length > 0) {
        for (const { deleteForEvents: deleteRows } of rows) await deleteRows?.(writer, eventNids, database);
        await store.deleteEvents(writer, deletion.roomNid, removed);
        publish(engine.removals, { kind: 'pruned', eventNids, roomId: deletion.roomId });
      }
      const gapsToAdd = new Map(gaps);
      for (const { nid, event } of events) if (extremities.has(nid)) gapsToAdd.delete(event.eventId);
      if (gapsToAdd.size > 0) await store.addGaps(writer, deletion.roomNid, gapsToAdd);
      return removed.length;
    });
    metrics.deleted(deletion.sentBefore === undefined ? 'administrator' : 'retention', count);
  }

  /**
   * Returns the messages that may be deleted. Forward extremities are kept. A redaction is kept with its target, unless
   * the redaction has expired.
   */
  async #deletable(
    { extremities, formerExtremities }: RoomHead,
    { deleteLocalEvents, sentBefore }: DeletionProgress,
    events: readonly StoredEvent[],
  ): Promise<StoredEvent[]> {
    const { engine, serverName } = this.#deps;
    const keptNids = new Set([...extremities.map(({ nid }) => nid), ...formerExtremities]);
    const messages = events.filter(
      ({ nid, event }) =>
        event.stateKey === undefined &&
        !keptNids.has(nid) &&
        (sentBefore === undefined || event.originServerTs < sentBefore) &&
        (deleteLocalEvents || serverOfUser(event.sender) !== serverName),
    );
    // An expired redaction is deleted even if its target is kept.
    if (sentBefore !== undefined) return messages;
    const deletedIds = new Set(messages.map(({ event }) => event.eventId));
    // An event that is kept is served with its redaction.
    const targets = messages.flatMap(({ event }) => event.redacts ?? []).filter((id) => !deletedIds.has(id));
    const keptTargets = await engine.events.getManyById(targets);
    return messages.filter(({ event }) => event.redacts === undefined || !keptTargets.has(event.redacts));
  }

  /**
   * Returns which `prev_events` of the timeline events among `events` are missing or about to be deleted: by event id,
   * the nid of an event that refers to it.
   */
  async #gapsBefore(
    events: readonly StoredEvent[],
    deleted: ReadonlySet<string>,
  ): Promise<Map<string, number>> {
    const { database } = this.#deps;
    const stored = new Set(events.map(({ event }) => event.eventId));
    const referencedBy = new Map<string, number>();
    for (const { nid, stream, event } of events) {
      if (stream === undefined) continue;
      for (const id of event.prevEventIds) if (!stored.has(id)) referencedBy.set(id, nid);
    }
    const notAmongEvents = [...referencedBy.keys()].filter((id) => !deleted.has(id));
    for (let start = 0; start < notAmongEvents.length; start += eventsAtOnce) {
      const chunk = notAmongEvents.slice(start, start + eventsAtOnce);
      for (const id of await store.storedIds(database, chunk)) referencedBy.delete(id);
    }
    return referencedBy;
  }

  /** Records the missing `prev_events` of these events as backward extremities. */
  async #addGaps(roomNid: number, nids: readonly number[]): Promise<void> {
    const { database, engine } = this.#deps;
    const gaps = await this.#gapsBefore([...(await engine.events.getMany(nids)).values()], new Set());
    if (gaps.size === 0) return;
    await database.transaction<RoomTables, void>((writer) => store.addGaps(writer, roomNid, gaps));
  }
}
