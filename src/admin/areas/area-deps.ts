import type { AccountsSlice } from '../../accounts/index.ts';
import type { Directory } from '../../directory/index.ts';
import type { CacheRegistry } from '../../kernel/caches/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { Jobs } from '../../kernel/jobs/index.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import type { Rooms } from '../../rooms/index.ts';
import type { PageCursors } from '../paging/page-cursors.ts';
import type { LocalUsers } from '../users/local-user.ts';

/** What several areas of the admin API need. */
export interface AdminDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Logger;
  readonly caches: CacheRegistry;
  readonly jobs: Jobs;
  readonly serverName: string;
  readonly accounts: AccountsSlice;
  readonly rooms: Rooms;
  readonly directory: Directory;
}

/** What the routes of each area of the admin API need besides the services of their area. */
export interface AreaDeps extends AdminDeps {
  readonly users: LocalUsers;
  readonly cursors: PageCursors;
  /** Resolves when the table of listed rooms, `room_stats`, is up to date. */
  readonly caughtUp: () => Promise<void>;
}
