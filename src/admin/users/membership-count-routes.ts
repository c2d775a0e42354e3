import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import type { LocalUsers } from './local-user.ts';
import type { MembershipCounts } from './membership-counts.ts';

const userPath = '/_server/admin/v1/users/:userId';
const query = Type.Object({ from_ts: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }) });

/** Counts the invites and joins of users since a time. */
export function membershipCountRoutes(counts: MembershipCounts, users: LocalUsers): Route[] {
  return [
    route(
      {
        operationId: 'countSentInvites',
        method: 'GET',
        path: `${userPath}/sent_invite_count`,
        auth: 'admin',
        query,
        response: Type.Object({ invite_count: Type.Integer() }),
      },
      async ({ params: { userId }, query: { from_ts } }) => {
        await users.get(userId);
        return { invite_count: await counts.sentInvites(userId, from_ts) };
      },
    ),
    route(
      {
        operationId: 'countJoinedRooms',
        method: 'GET',
        path: `${userPath}/cumulative_joined_room_count`,
        auth: 'admin',
        query,
        response: Type.Object({ cumulative_joined_room_count: Type.Integer() }),
      },
      async ({ params: { userId }, query: { from_ts } }) => {
        await users.get(userId);
        return { cumulative_joined_room_count: await counts.joinedRooms(userId, from_ts) };
      },
    ),
  ];
}
