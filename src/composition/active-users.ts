import { type ActiveUsers, openActiveUsers } from '../active-users/index.ts';
import type { Kernel } from './kernel.ts';
import type { OpenedSlices } from './opened-slices.ts';
import type { OpenedThirdPartyIds } from './third-party-ids.ts';

/**
 * Opens the count and the limit of monthly active users. Must be called before accounts are opened and before jobs are
 * started.
 * @returns `undefined` where users are not counted
 */
export async function startActiveUsers(
  kernel: Kernel,
  { thirdPartyIds: { addresses } }: OpenedThirdPartyIds,
  opened: OpenedSlices,
): Promise<ActiveUsers | undefined> {
  const { accounts, appservices } = kernel.configuration;
  const { track_appservice_user_ips } = appservices;
  const activeUsers = await openActiveUsers(
    {
      ...kernel,
      log: kernel.namedLog('active-users'),
      findUser: (medium, address) => addresses.findUser(medium, address),
    },
    { ...accounts, track_appservice_user_ips },
  );
  return activeUsers && opened.add('active users', activeUsers);
}
