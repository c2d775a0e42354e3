import { Type } from 'typebox';
import type { AccountData, AccountDataEntry } from '../../account-data/index.ts';
import { type Route, route } from '../../kernel/http/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import { type Pusher, type Pushers, pusherFields } from '../../pushers/index.ts';
import type { RoomReader } from '../../room-engine/index.ts';
import { anyObject, flag, integer, nullableText, text } from '../response-fields.ts';
import { type LocalUsers, requireUserId } from './local-user.ts';

const userPath = '/_server/admin/v1/users/:userId';

/** The data of a pusher. Pushers of the kind `http` have these fields; pushers of other kinds may have more. */
const pusherData = Type.Unsafe<JsonObject>(
  Type.Object({ url: Type.Optional(text), format: Type.Optional(text) }, { additionalProperties: true }),
);

const pusher = Type.Object({
  app_display_name: text,
  app_id: text,
  data: pusherData,
  device_display_name: text,
  kind: text,
  lang: text,
  profile_tag: text,
  pushkey: text,
  enabled: flag,
  device_id: nullableText,
});

export interface UserDataDeps {
  readonly engine: Pick<RoomReader, 'userRooms'>;
  readonly accountData: AccountData;
  readonly pushers: Pushers;
  readonly users: LocalUsers;
}

/** Serves the rooms, the account data and the pushers of a user. */
export function userDataRoutes({ engine, accountData, pushers, users }: UserDataDeps): Route[] {
  return [
    route(
      {
        operationId: 'listUserJoinedRooms',
        method: 'GET',
        path: `${userPath}/joined_rooms`,
        auth: 'admin',
        response: Type.Object({ joined_rooms: Type.Array(Type.String()), total: Type.Integer() }),
      },
      async ({ params: { userId } }) => {
        requireUserId(userId);
        const joined = await engine.userRooms.withMembership(userId, 'join');
        return { joined_rooms: joined, total: joined.length };
      },
    ),
    route(
      {
        operationId: 'listUserMemberships',
        method: 'GET',
        path: `${userPath}/memberships`,
        auth: 'admin',
        response: Type.Object({ memberships: Type.Record(Type.String(), Type.String()) }),
      },
      async ({ params: { userId } }) => {
        requireUserId(userId);
        const rooms = [...(await engine.userRooms.of(userId)).values()];
        return { memberships: Object.fromEntries(rooms.map((room) => [room.roomId, room.membership])) };
      },
    ),
    route(
      {
        operationId: 'getUserAccountData',
        method: 'GET',
        path: `${userPath}/accountdata`,
        auth: 'admin',
        response: Type.Object({ account_data: Type.Object({ global: anyObject, rooms: anyObject }) }),
      },
      async ({ params: { userId } }) => {
        await users.get(userId);
        const entries = await accountData.all(userId);
        const byRoom = Map.groupBy(entries, ({ roomId }) => roomId);
        const global = contentsOf(byRoom.get(undefined) ?? []);
        byRoom.delete(undefined);
        const rooms = [...byRoom].map(([roomId, ofRoom]) => [roomId, contentsOf(ofRoom)]);
        return { account_data: { global, rooms: Object.fromEntries(rooms) } };
      },
    ),
    route(
      {
        operationId: 'listUserPushers',
        method: 'GET',
        path: `${userPath}/pushers`,
        auth: 'admin',
        response: Type.Object({ pushers: Type.Array(pusher), total: integer }),
      },
      async ({ params: { userId } }) => {
        await users.get(userId);
        const list = (await pushers.list(userId)).map(pusherJson);
        return { pushers: list, total: list.length };
      },
    ),
  ];
}

const pusherJson = (pusher: Pusher) => ({
  ...pusherFields(pusher),
  enabled: pusher.enabled,
  device_id: pusher.deviceId ?? null,
});

const contentsOf = (entries: readonly AccountDataEntry[]): JsonObject =>
  Object.fromEntries(entries.map(({ type, content }) => [type, content]));
