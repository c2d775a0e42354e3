import type { Clock } from '../kernel/clock.ts';
import type { Database } from '../kernel/database/index.ts';
import type { Randomness } from '../kernel/randomness.ts';
import type { StreamReader } from '../kernel/streams/index.ts';
import type { PrejoinKeys } from '../room-engine/index.ts';
import type { InvitePolicy, Rooms } from '../rooms/index.ts';
import { DevicePart, type DeviceSources } from './classic/device-part.ts';
import { PromptAnswers } from './classic/prompt-answers.ts';
import { RepeatedSyncs } from './classic/repeated-syncs.ts';
import { EventText } from './classic/rooms/event-text.ts';
import { JoinedRooms } from './classic/rooms/joined-room.ts';
import { OtherRooms } from './classic/rooms/other-rooms.ts';
import { RoomNews } from './classic/rooms/room-news.ts';
import { SentMembers } from './classic/rooms/sent-members.ts';
import { Sync } from './classic/sync.ts';
import { Departures } from './departures.ts';
import { EventStream } from './event-stream/event-stream.ts';
import { InitialSync } from './event-stream/initial-sync.ts';
import { RoomInfos } from './event-stream/room-info.ts';
import { RoomWaiters } from './event-stream/room-waiters.ts';
import type { EventStreamServices } from './event-stream/routes.ts';
import { Feeds } from './feeds/feeds.ts';
import { openSlidingSync } from './sliding/open-sliding-sync.ts';
import type { SlidingSync } from './sliding/sliding-sync.ts';
import type { ThreadSubscriptionSource } from './sliding/sources.ts';
import type { SyncSources } from './sources.ts';
import { ToldInvites } from './told-invites.ts';

export interface SyncServicesDeps {
  readonly rooms: Rooms;
  readonly streams: StreamReader;
  readonly clock: Clock;
  readonly database: Database;
  readonly randomness: Randomness;
  readonly sources: SyncSources;
  readonly deviceSources: DeviceSources;
  readonly threadSubscriptions: ThreadSubscriptionSource;
  /** What of a room's state people see before they are in it. */
  readonly prejoinKeys: PrejoinKeys;
  /** Rooms that no sync mentions. */
  readonly excludedRooms: ReadonlySet<string>;
  /** What users want to become of invites. */
  readonly invitePolicy: InvitePolicy;
  /** Most events of a timeline, whatever the client asks for. */
  readonly maxEvents: number;
  /** Milliseconds for which answers are remembered (`caches.sync_response_cache_duration`). */
  readonly answersKept: number;
}

export interface SyncServices {
  readonly sync: RepeatedSyncs;
  readonly slidingSync: SlidingSync;
  /** For clients that are older than `/sync`, and those who look into rooms from outside. */
  readonly eventStream: EventStreamServices;
  /** For composition: tells the feeds which streams to follow. */
  readonly feeds: Feeds;
}

/** Puts the parts of all kinds of sync together, on the same feeds and texts. */
export function openSync(deps: SyncServicesDeps): SyncServices {
  const { streams, clock, sources, deviceSources } = deps;
  const { engine, clientEvents } = deps.rooms;
  const feeds = new Feeds(engine, streams, clock);
  const text = new EventText(clientEvents, clock);
  const sentMembers = new SentMembers();
  const joinedRooms = new JoinedRooms({ engine, text, sources, sentMembers });
  const toldInvites = new ToldInvites(engine, deps.invitePolicy);
  const otherRooms = new OtherRooms(engine, text, deps.prejoinKeys);
  const departures = new Departures(engine);
  const devicePart = new DevicePart(deviceSources);
  const news = new RoomNews({ engine, text, sources });
  const sync = new Sync({
    ...deps,
    engine,
    feeds,
    joinedRooms,
    otherRooms,
    toldInvites,
    departures,
    devicePart,
    promptAnswers: new PromptAnswers({ ...deps, engine, news, devicePart, sentMembers }),
  });
  const repeated = new RepeatedSyncs(sync, clock, deps.answersKept);
  sources.accountData.accountDataStream.subscribe(({ userId, type }) => {
    const isAboutOthers = type === 'm.ignored_user_list' || type.endsWith('invite_permission_config');
    if (isAboutOthers) repeated.forget(userId);
  });
  return {
    sync: repeated,
    slidingSync: openSlidingSync({
      ...deps,
      engine,
      feeds,
      text,
      otherRooms,
      toldInvites,
      departures,
      extensionSources: {
        ...deviceSources,
        toDevice: deviceSources.queues,
        threadSubscriptions: deps.threadSubscriptions,
      },
    }),
    eventStream: openEventStream({ ...deps, toldInvites, feeds }),
    feeds,
  };
}

function openEventStream(
  deps: SyncServicesDeps & { toldInvites: ToldInvites; feeds: Feeds },
): EventStreamServices {
  const { rooms, streams, clock, sources } = deps;
  const { engine, clientEvents } = rooms;
  const roomInfos = new RoomInfos(deps);
  return {
    rooms,
    streams,
    accountData: sources.accountData,
    roomInfos,
    initialSync: new InitialSync({ ...deps, engine, clientEvents, roomInfos }),
    eventStream: new EventStream({
      ...deps,
      engine,
      clientEvents,
      waiters: new RoomWaiters(engine, streams, clock),
    }),
  };
}
