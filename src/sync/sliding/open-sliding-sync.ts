import type { AccountData } from '../../account-data/index.ts';
import type { CacheRegistry } from '../../kernel/caches/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { Randomness } from '../../kernel/randomness.ts';
import type { StreamReader } from '../../kernel/streams/index.ts';
import type { RoomReader } from '../../room-engine/index.ts';
import type { EventText } from '../classic/rooms/event-text.ts';
import type { UnjoinedRooms } from '../classic/rooms/unjoined-rooms.ts';
import type { Feeds } from '../feeds/feeds.ts';
import type { KicksAndBans } from '../kicks-and-bans.ts';
import type { ShownInvites } from '../shown-invites.ts';
import type { SourceList } from '../sources/source-list.ts';
import { Answers } from './answers.ts';
import { Connections } from './connections/connections.ts';
import { Extensions } from './extensions/extensions.ts';
import { ListFilter } from './lists/list-filter.ts';
import { RoomList } from './lists/room-list.ts';
import { RoomTraitsReader } from './lists/room-traits.ts';
import { UserMarks } from './lists/user-marks.ts';
import { JoinedRoom } from './rooms/joined-room.ts';
import { RoomActivity } from './rooms/room-activity.ts';
import { UnjoinedRoom } from './rooms/unjoined-room.ts';
import { SlidingSync } from './sliding-sync.ts';

export interface SlidingSyncServicesDeps {
  readonly caches: CacheRegistry;
  readonly database: Database;
  readonly streams: StreamReader;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly engine: RoomReader;
  readonly feeds: Feeds;
  readonly text: EventText;
  /** Makes the stripped state of invites and knocks, as in the classic sync. */
  readonly unjoinedRooms: UnjoinedRooms;
  readonly sources: SourceList;
  /** Contains the user's direct chats and room tags. */
  readonly accountData: AccountData;
  readonly shownInvites: ShownInvites;
  readonly kicksAndBans: KicksAndBans;
  readonly excludedRooms: ReadonlySet<string>;
  /** Maximum number of events of a timeline. */
  readonly maxTimelineEvents: number;
}

/** Assembles simplified sliding sync. */
export function openSlidingSync(deps: SlidingSyncServicesDeps): SlidingSync {
  const { engine, sources, accountData, caches } = deps;
  const activity = new RoomActivity(engine, caches);
  const extensions = new Extensions(sources);
  const answers = new Answers({
    ...deps,
    roomList: new RoomList({ ...deps, activity }),
    listFilter: new ListFilter({ engine, traits: new RoomTraitsReader(engine, caches) }),
    marks: new UserMarks(accountData, caches),
    joinedRoom: new JoinedRoom({ ...deps, activity }),
    unjoinedRoom: new UnjoinedRoom(deps),
    extensions,
  });
  return new SlidingSync({ ...deps, connections: new Connections(deps), answers, extensions });
}
