import { type ConsentGateDeps, consentGatedRoutes, requireConsent } from '../accounts/index.ts';
import { type ActiveUsers, limitedRoutes } from '../active-users/index.ts';
import type { Route } from '../kernel/http/index.ts';
import { isNoticeRoom } from '../server-notices/index.ts';
import type { Kernel } from './kernel.ts';
import type { Users } from './users.ts';

/**
 * Adds the checks of limits and consent to routes, as far as the options enable them. Routes that receive or send
 * events refuse users beyond the limit of monthly active users; routes that send events refuse users who have not
 * agreed to the policy.
 */
export function gatedRoutes(
  routes: readonly Route[],
  kernel: Kernel,
  users: Users,
  activeUsers: ActiveUsers | undefined,
): readonly Route[] {
  const message = consentMessage(kernel);
  const gated = message === null ? routes : consentGatedRoutes(routes, gateDeps(kernel, users), message);
  return activeUsers ? limitedRoutes(gated, activeUsers.limit) : gated;
}

/**
 * Returns the check of a user for whom the server sends an event later (a delayed event). The check throws a
 * MatrixError for a user beyond the limit, or without consent.
 */
export function senderCheck(
  kernel: Kernel,
  users: Users,
  activeUsers: ActiveUsers | undefined,
): (userId: string) => Promise<void> {
  const message = consentMessage(kernel);
  return async (userId) => {
    await activeUsers?.limit.checkUser(userId);
    if (message !== null) await requireConsent(gateDeps(kernel, users), userId, message);
  };
}

const consentMessage = ({ configuration }: Kernel): string | null =>
  configuration.accounts.user_consent?.block_events_error ?? null;

const gateDeps = ({ database }: Kernel, { accounts: { accounts, consents } }: Users): ConsentGateDeps => ({
  consents,
  account: (userId) => accounts.getUser(userId),
  isNoticeRoom: (userId, roomId) => isNoticeRoom(database, userId, roomId),
});
