import type { CacheRegistry } from '../kernel/caches/index.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Database } from '../kernel/database/index.ts';
import type { Jobs } from '../kernel/jobs/index.ts';
import type { Logger, Metrics } from '../kernel/observability/index.ts';
import type { Randomness } from '../kernel/randomness.ts';
import type { RoomRows } from '../kernel/slices/index.ts';
import type { StreamWriter } from '../kernel/streams/index.ts';
import { registerTransactionCleanup, StateGroupCleanup } from '../room-engine/index.ts';
import { AutoJoin } from './auto-join/auto-join.ts';
import type { RoomsConfig } from './config.ts';
import { DummyEvents } from './dummy-events/dummy-events.ts';
import { runMembershipJobs } from './membership/run-membership-jobs.ts';
import { cleanCompletedStates } from './purge/completed-states.ts';
import { ForgottenRooms } from './purge/forgotten-rooms.ts';
import { HistoryDeletion } from './purge/history-deletion.ts';
import { HistoryPurge } from './purge/history-purge.ts';
import { openPurgeMetrics } from './purge/purge-metrics.ts';
import { RoomPurge } from './purge/room-purge.ts';
import { RedactionRetention } from './redactions/redaction-retention.ts';
import { ExpiredMessages } from './retention/expired-messages.ts';
import type { Rooms } from './rooms.ts';
import { SettingsTransfer, type SettingsTransferDeps } from './upgrade/settings-transfer.ts';

export interface RoomUpkeepDeps {
  readonly caches: CacheRegistry;
  readonly database: Database;
  /** The database of the state groups; by default `database`. */
  readonly stateDatabase?: Database;
  readonly streams: StreamWriter;
  readonly clock: Clock;
  readonly jobs: Jobs;
  readonly randomness: Randomness;
  readonly log: Logger;
  readonly metrics?: Metrics | undefined;
  readonly serverName: string;
  readonly rooms: Rooms;
  readonly options: RoomsConfig;
  /** The rows that all slices store for rooms. */
  readonly rows: readonly RoomRows[];
  /** Whether a local user is a guest. */
  readonly isGuest: (userId: string) => Promise<boolean>;
  /** Copies the settings of a user who joins the replacement of a room. */
  readonly transferSettings: SettingsTransferDeps['transfer'];
}

/** Milliseconds between two checks for free space in the database. */
const releaseInterval = 3_600_000;

/** The background work on rooms that other slices can start. */
export interface RoomUpkeep {
  readonly purge: RoomPurge;
  readonly historyPurge: HistoryPurge;
  readonly dummyEvents: DummyEvents;
  /** Stops the transfers of settings; jobs are stopped elsewhere. */
  stop(): Promise<void>;
}

/**
 * Opens the background work on rooms: the jobs that change memberships when an account or a profile has changed,
 * transfers of settings, dummy events, retention and purges. Call it before jobs are started.
 */
export async function openRoomUpkeep(deps: RoomUpkeepDeps): Promise<RoomUpkeep> {
  const { options, jobs, rooms, rows } = deps;
  const sharedDeps = { ...deps, engine: rooms.engine };
  registerTransactionCleanup(jobs, deps);
  runMembershipJobs({ ...sharedDeps, memberships: rooms.memberships });
  // The constructor registers its job, as do the constructors of the other classes below that have jobs.
  new AutoJoin(deps);
  new RedactionRetention({ ...sharedDeps, period: options.redaction_retention_period });
  const dummyEvents = new DummyEvents({ ...sharedDeps, threshold: options.dummy_events_threshold });
  const purge = new RoomPurge({ ...sharedDeps, rows });
  const metrics = openPurgeMetrics(deps.metrics);
  const groups = new StateGroupCleanup({ ...sharedDeps, onRemoved: (count) => metrics.groupsDeleted(count) });
  cleanCompletedStates({ ...sharedDeps, groups });
  const deletion = new HistoryDeletion({ ...sharedDeps, metrics, onEnd: (room) => groups.schedule(room) });
  jobs.every('rooms/release-space', releaseInterval, {
    run: async ({ signal }) => {
      let bytes = await deps.database.releaseSpace(signal);
      if (deps.stateDatabase && deps.stateDatabase !== deps.database)
        bytes += await deps.stateDatabase.releaseSpace(signal);
      if (bytes > 0) deps.log.info({ bytes }, 'Gave the disk space of deleted rows back to the file system');
    },
  });
  const historyPurge = new HistoryPurge({ ...sharedDeps, deletion });
  const expired = new ExpiredMessages({ ...sharedDeps, deletion, options: options.retention });
  await expired.start();
  new ForgottenRooms({ ...sharedDeps, purge, period: options.forgotten_room_retention_period });
  const settings = new SettingsTransfer({
    ...sharedDeps,
    transfer: deps.transferSettings,
    moveListing: (from, to) => rooms.upgrades.moveListing(from, to),
  });
  await settings.start();
  return { purge, historyPurge, dummyEvents, stop: () => settings.stop() };
}
