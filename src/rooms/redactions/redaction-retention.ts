import type { Clock } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { Jobs } from '../../kernel/jobs/index.ts';
import type { StreamWriter } from '../../kernel/streams/index.ts';
import { redactEvent } from '../../protocol/index.ts';
import type { RoomTables, RoomWriter, StoredEvent } from '../../room-engine/index.ts';

export interface RedactionRetentionDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly jobs: Jobs;
  readonly streams: StreamWriter;
  readonly engine: RoomWriter;
  /** `redaction_retention_period` in milliseconds; null: original content is never deleted. */
  readonly period: number | null;
}

/** Interval of the job, in milliseconds. */
const interval = 5 * 60_000;

/** Maximum number of events per transaction. */
const eventsAtOnce = 200;

/** Deletes the original content of redacted events from the disk after the retention period. */
export class RedactionRetention {
  readonly #deps: RedactionRetentionDeps;

  /** Registers the job; the constructor must be called before jobs are started. */
  constructor(deps: RedactionRetentionDeps) {
    this.#deps = deps;
    deps.jobs.every('rooms/prune-redacted', interval, { run: ({ signal }) => this.#prune(signal) });
  }

  async #prune(signal: AbortSignal): Promise<void> {
    const { engine, clock, period } = this.#deps;
    if (period === null) return;
    for (let hasMore = true; hasMore; ) {
      signal.throwIfAborted();
      const expiredNids = await this.#expiredNids(clock.now() - period);
      const events = await engine.events.getMany(expiredNids);
      await this.#writeRedacted(expiredNids, events);
      hasMore = expiredNids.length === eventsAtOnce;
    }
  }

  async #expiredNids(until: number): Promise<number[]> {
    const rows = await this.#deps.database
      .reader<RoomTables>()
      .selectFrom('redacted_events')
      .select('event_nid')
      .where('redacted_ts', '<=', until)
      .orderBy('redacted_ts')
      .limit(eventsAtOnce)
      .execute();
    return rows.map((row) => row.event_nid);
  }

  async #writeRedacted(
    expiredNids: readonly number[],
    events: ReadonlyMap<number, StoredEvent>,
  ): Promise<void> {
    if (expiredNids.length === 0) return;
    const { streams, engine } = this.#deps;
    await streams.write<RoomTables, void>(async (writer, publish) => {
      for (const { nid, event, redactedBy } of events.values()) {
        if (redactedBy === undefined) continue;
        await writer
          .updateTable('events')
          .set({ json: redactEvent(event).json })
          .where('nid', '=', nid)
          .execute();
      }
      await writer.deleteFrom('redacted_events').where('event_nid', 'in', expiredNids).execute();
      publish(engine.removals, { kind: 'pruned', eventNids: [...events.keys()] });
    });
  }
}
