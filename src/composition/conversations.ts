import type { Route } from '../kernel/http/index.ts';
import { pushRuleRoutes, Unread } from '../push/index.ts';
import { Receipts, receiptRoutes } from '../receipts/index.ts';
import { type Rooms, roomRoutes } from '../rooms/index.ts';
import { openSync, RoomPart, type SyncServices, syncRoutes, UserPart } from '../sync/index.ts';
import { Typing, typingRoutes } from '../typing/index.ts';
import type { Kernel } from './kernel.ts';
import type { People } from './people.ts';
import { prejoinKeys } from './rooms.ts';
import type { Shutdown } from './shutdown.ts';

/** What goes on in rooms besides their events: tier 3, and sync, which tells clients of everything. */
export interface Conversations {
  readonly receipts: Receipts;
  readonly typing: Typing;
  readonly sync: SyncServices;
}

/** Page size where the operator sets no limit: memory has one. */
const mostEventsWithoutLimit = 1_000;

export function startConversations(
  kernel: Kernel,
  people: People,
  rooms: Rooms,
  shutdown: Shutdown,
): Conversations {
  const { engine } = rooms;
  const { accountData, pushRules } = people;
  const typing = new Typing({ ...kernel, roomStream: engine.stream });
  const receipts = new Receipts({ ...kernel, engine, markers: fullyReadMarkers(people) });
  const unread = new Unread({
    ...kernel,
    engine,
    receipts,
    rules: pushRules,
    ignored: people.ignoredUsers,
    enabled: kernel.configuration.push.push.enabled,
  });
  shutdown.add('unread counts', () => unread.stop());
  shutdown.add('typing', () => typing.close());
  const sync = openSync({
    ...kernel,
    rooms,
    sources: { receipts, typing, accountData, pushRules, unread },
    prejoinKeys: prejoinKeys(kernel),
    excludedRooms: new Set(kernel.configuration.sync.exclude_rooms_from_sync),
  });
  const { feeds } = sync;
  feeds.followRooms(typing.typingStream, RoomPart.typing, ({ roomId }) => roomId);
  feeds.followRooms(receipts.receiptStream, RoomPart.receipts, ({ roomId }) => roomId);
  feeds.followUsers(
    accountData.accountDataStream,
    ({ roomId }) => (roomId === undefined ? UserPart.accountData : RoomPart.accountData),
    ({ userId }) => [userId],
    ({ roomId }) => roomId,
  );
  feeds.followUsers(
    pushRules.pushRulesStream,
    () => UserPart.pushRules,
    ({ userId }) => [userId],
  );
  return { receipts, typing, sync };
}

/** Read markers are account data of rooms. Source: client-server API, "Fully read markers". */
function fullyReadMarkers({ accountData }: People) {
  const key = (userId: string, roomId: string) => ({ userId, roomId, type: 'm.fully_read' });
  return {
    async find(userId: string, roomId: string): Promise<string | undefined> {
      const eventId = (await accountData.find(key(userId, roomId)))?.['event_id'];
      return typeof eventId === 'string' ? eventId : undefined;
    },
    set: (userId: string, roomId: string, eventId: string) =>
      accountData.set(key(userId, roomId), { event_id: eventId }),
  };
}

export function conversationRoutes(
  { configuration }: Kernel,
  people: People,
  rooms: Rooms,
  { receipts, typing, sync }: Conversations,
): Route[] {
  const { filter_timeline_limit } = configuration.sync;
  const mostEvents = filter_timeline_limit === -1 ? mostEventsWithoutLimit : filter_timeline_limit;
  return [
    ...roomRoutes(rooms, mostEvents),
    ...receiptRoutes(receipts),
    ...typingRoutes(typing, rooms.engine),
    ...pushRuleRoutes(people.pushRules),
    ...syncRoutes(
      sync.sync,
      (userId, filter) => people.filters.resolve(userId, filter),
      () => undefined,
      mostEvents,
    ),
  ];
}
