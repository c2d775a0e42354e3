import type { Jobs } from '../../kernel/jobs/index.ts';
import type { StreamReader } from '../../kernel/streams/index.ts';
import type { RoomReader, StateGroupCleanup } from '../../room-engine/index.ts';

export interface CompletedStatesDeps {
  readonly jobs: Jobs;
  readonly streams: Pick<StreamReader, 'current'>;
  readonly engine: Pick<RoomReader, 'roomsCompletedSince'>;
  readonly groups: Pick<StateGroupCleanup, 'schedule'>;
}

/** Interval of the job, in milliseconds. */
const interval = 3_600_000;

/** Earlier runs scheduled the cleanup of all rooms whose partial state was complete at this position. */
type Progress = { readonly position: number };

/**
 * Schedules the cleanup of the state groups of rooms that were joined with partial state, once that state is complete.
 * When a state becomes complete, the events since the join are assigned new state groups, and no event uses their
 * earlier groups any more. Registers the job, so it must be called before jobs are started.
 */
export function cleanCompletedStates({ jobs, streams, engine, groups }: CompletedStatesDeps): void {
  jobs.every<Progress>('rooms/clean-completed-states', interval, {
    async run({ payload, signal, progress }) {
      // Rooms that become complete during the run have higher positions, and are found again by the next run.
      const position = streams.current;
      for (const room of await engine.roomsCompletedSince(payload?.position ?? 0)) {
        signal.throwIfAborted();
        await groups.schedule(room);
      }
      await progress({ position });
    },
  });
}
