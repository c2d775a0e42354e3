import type { AccountData } from '../account-data/index.ts';
import type { CacheRegistry } from '../kernel/caches/index.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Database } from '../kernel/database/index.ts';
import type { Randomness } from '../kernel/randomness.ts';
import type { StreamReader } from '../kernel/streams/index.ts';
import type { PrejoinStateKeys } from '../room-engine/index.ts';
import type { InvitePolicy, ReadingRooms } from '../rooms/index.ts';
import type { SyncSource } from '../sync-contract/index.ts';
import { Answers } from './classic/answers.ts';
import { CachingSync } from './classic/caching-sync.ts';
import { DeviceFields } from './classic/device-fields.ts';
import { EventText } from './classic/rooms/event-text.ts';
import { JoinedRooms } from './classic/rooms/joined-rooms.ts';
import { PlainTimelines } from './classic/rooms/plain-timelines.ts';
import { RoomEntries } from './classic/rooms/room-entries.ts';
import { SentMembers } from './classic/rooms/sent-members.ts';
import { SharedTimelines } from './classic/rooms/shared-timelines.ts';
import { UnjoinedRooms } from './classic/rooms/unjoined-rooms.ts';
import { Sync } from './classic/sync.ts';
import { EventStream } from './event-stream/event-stream.ts';
import { InitialSync } from './event-stream/initial-sync.ts';
import { OtherEvents } from './event-stream/other-events.ts';
import { RoomInfos } from './event-stream/room-info.ts';
import { RoomWaiters } from './event-stream/room-waiters.ts';
import type { EventStreamServices } from './event-stream/routes.ts';
import { Feeds } from './feeds/feeds.ts';
import { KicksAndBans } from './kicks-and-bans.ts';
import { ShownInvites } from './shown-invites.ts';
import { openSlidingSync } from './sliding/open-sliding-sync.ts';
import type { SlidingSync } from './sliding/sliding-sync.ts';
import { SourceList } from './sources/source-list.ts';

export interface SyncServicesDeps {
  readonly caches: CacheRegistry;
  readonly rooms: ReadingRooms;
  readonly streams: StreamReader;
  readonly clock: Clock;
  readonly database: Database;
  readonly randomness: Randomness;
  /** The sources of data, in the order of their fields in an answer. */
  readonly sources: readonly SyncSource[];
  /** Contains the user's direct chats, room tags and ignored users. */
  readonly accountData: AccountData;
  /** The state that users see of a room before they join it. */
  readonly prejoinStateKeys: PrejoinStateKeys;
  /** Rooms that are left out of every sync. */
  readonly excludedRooms: ReadonlySet<string>;
  /** Decides which invites users see. */
  readonly invitePolicy: InvitePolicy;
  /** Maximum number of events of a timeline, whatever the client requests. */
  readonly maxTimelineEvents: number;
  /** Milliseconds that answers are cached (`caches.sync_response_cache_duration`). */
  readonly answerCacheDuration: number;
}

export interface SyncServices {
  readonly sync: CachingSync;
  readonly slidingSync: SlidingSync;
  /** Services of the endpoints that clients used before `/sync` existed and still use for room previews. */
  readonly eventStream: EventStreamServices;
  readonly sources: SourceList;
}

/** Assembles all kinds of sync over the same feeds and event texts. */
export function openSync(deps: SyncServicesDeps): SyncServices {
  const { streams, clock, accountData } = deps;
  const { engine, clientEvents } = deps.rooms;
  const sources = new SourceList(deps.sources);
  const feeds = new Feeds({ ...deps, engine });
  for (const source of sources.all) feeds.follow(source);
  const text = new EventText(clientEvents);
  const sentMembers = new SentMembers(deps.caches);
  const sharedTimelines = new SharedTimelines(text, engine.retention);
  const plainTimelines = new PlainTimelines({ engine, clock, sharedTimelines, sentMembers });
  const joinedRooms = new JoinedRooms({ engine, text, sources, sentMembers, plainTimelines });
  const shownInvites = new ShownInvites(engine, deps.invitePolicy);
  const unjoinedRooms = new UnjoinedRooms(engine, text, deps.prejoinStateKeys);
  const kicksAndBans = new KicksAndBans(engine, deps.caches);
  const deviceFields = new DeviceFields(sources);
  const { excludedRooms } = deps;
  const rooms = { engine, sources, joinedRooms, unjoinedRooms, shownInvites, kicksAndBans, excludedRooms };
  const answers = new Answers({ engine, sources, deviceFields, roomEntries: new RoomEntries(rooms) });
  const sync = new Sync({ streams, clock, feeds, deviceFields, answers });
  const cachingSync = new CachingSync(sync, deps, deps.answerCacheDuration);
  accountData.accountDataStream.subscribe(({ userId, type }) => {
    const hidesUsers = type === 'm.ignored_user_list' || type.endsWith('invite_permission_config');
    if (hidesUsers) cachingSync.forget(userId);
  });
  return {
    sync: cachingSync,
    slidingSync: openSlidingSync({
      ...deps,
      sources,
      engine,
      feeds,
      text,
      unjoinedRooms,
      shownInvites,
      kicksAndBans,
    }),
    eventStream: openEventStream({ ...deps, sources, shownInvites, feeds }),
    sources,
  };
}

function openEventStream(
  deps: Omit<SyncServicesDeps, 'sources'> & { sources: SourceList; shownInvites: ShownInvites; feeds: Feeds },
): EventStreamServices {
  const { rooms, streams, clock, sources } = deps;
  const { engine, clientEvents } = rooms;
  const otherEvents = new OtherEvents(engine, sources);
  const roomInfos = new RoomInfos({ rooms, otherEvents });
  return {
    rooms,
    streams,
    sources,
    roomInfos,
    initialSync: new InitialSync({ ...deps, engine, clientEvents, roomInfos, otherEvents }),
    eventStream: new EventStream({
      ...deps,
      engine,
      clientEvents,
      otherEvents,
      waiters: new RoomWaiters(engine, streams, clock),
    }),
  };
}
