import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import { invalidParam, notFound, serverOfUser } from '../../protocol/index.ts';
import type { Accounts } from '../accounts.ts';
import type { LimitOverrides } from './limit-overrides.ts';

const path = '/_server/admin/v1/users/:userId/override_ratelimit';

const count = Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }));

const limits = Type.Object({ messages_per_second: Type.Integer(), burst_count: Type.Integer() });

/** Absent fields: the user has no override. */
const limitsIfSet = Type.Partial(limits);

/** Admin API for rate limit overrides, compatible with existing tools. */
export function limitOverrideRoutes(
  accounts: Pick<Accounts, 'getUser'>,
  overrides: LimitOverrides,
  serverName: string,
): Route[] {
  const check = async (userId: string) => {
    if (serverOfUser(userId) !== serverName) throw invalidParam('The user does not belong to this server');
    if (userId.includes('\0') || !(await accounts.getUser(userId))) throw notFound('No such user');
  };
  return [
    route(
      { operationId: 'getRateLimitOverride', method: 'GET', path, auth: 'admin', response: limitsIfSet },
      async ({ params: { userId } }) => {
        await check(userId);
        return { ...overrides.get(userId) };
      },
    ),
    route(
      {
        operationId: 'setRateLimitOverride',
        method: 'POST',
        path,
        auth: 'admin',
        body: Type.Object({ messages_per_second: count, burst_count: count }),
        response: limits,
      },
      async ({ params: { userId }, body: { messages_per_second = 0, burst_count = 0 } }) => {
        await check(userId);
        await overrides.set(userId, { messages_per_second, burst_count });
        return { messages_per_second, burst_count };
      },
    ),
    route(
      {
        operationId: 'deleteRateLimitOverride',
        method: 'DELETE',
        path,
        auth: 'admin',
        response: Type.Object({}, { additionalProperties: false }),
      },
      async ({ params: { userId } }) => {
        await check(userId);
        await overrides.remove(userId);
        return {};
      },
    ),
  ];
}
