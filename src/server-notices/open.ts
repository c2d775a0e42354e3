import type { CacheRegistry } from '../kernel/caches/index.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Database } from '../kernel/database/index.ts';
import type { Jobs } from '../kernel/jobs/index.ts';
import type { Logger } from '../kernel/observability/index.ts';
import type { Randomness } from '../kernel/randomness.ts';
import type { Rooms } from '../rooms/index.ts';
import { type NoticeSources, sendAutomaticNotices } from './automatic/open.ts';
import type { NoticeOptions } from './config.ts';
import { runNoticeRoomJobs } from './notice-room-jobs.ts';
import { NoticeRooms, type RoomTags } from './notice-rooms.ts';
import { NoticesToAll } from './notices-to-all.ts';
import { noticesUser } from './notices-user.ts';
import { serverNoticeRoutes } from './routes.ts';
import { ServerNotices } from './server-notices.ts';

export interface OpenServerNoticesDeps {
  readonly database: Database;
  readonly jobs: Jobs;
  readonly log: Logger;
  readonly randomness: Randomness;
  readonly serverName: string;
  readonly caches: CacheRegistry;
  readonly clock: Clock;
  readonly rooms: Rooms;
  readonly tags: RoomTags;
  /** Whether a local user has an active account. */
  readonly userExists: (userId: string) => Promise<boolean>;
  /** Null: notices cannot be sent. */
  readonly options: NoticeOptions | null;
  /** The version of new notice rooms. */
  readonly roomVersion: string;
  /** The services and options that decide about the notices that the server sends by itself. */
  readonly sources: NoticeSources;
}

/**
 * Opens server notices, and the jobs that close the notice rooms of deactivated users. Must be called before jobs are
 * started.
 */
export async function openServerNotices(deps: OpenServerNoticesDeps) {
  const { jobs, rooms, serverName, userExists, log } = deps;
  const sending = noticeSending(deps);
  const serverNotices = new ServerNotices({ rooms, serverName, userExists, sending });
  runNoticeRoomJobs(jobs, rooms);
  if (sending && (await userExists(sending.user.userId))) {
    log.warn(
      { user: sending.user.userId },
      'server_notices.system_mxid_localpart names an existing account: its owner can send notices in the name of the server',
    );
  }
  const settled =
    sending &&
    sendAutomaticNotices({
      ...deps,
      ...deps.sources,
      notices: serverNotices,
      noticeRooms: sending.noticeRooms,
    });
  const toAll = new NoticesToAll({ ...deps, notices: serverNotices });
  return { routes: serverNoticeRoutes(serverNotices, toAll), stop: () => settled?.() };
}

function noticeSending({ options, serverName, ...deps }: OpenServerNoticesDeps) {
  if (options === null) return undefined;
  const user = noticesUser(options, serverName);
  return { user, noticeRooms: new NoticeRooms({ ...deps, user, options }) };
}
