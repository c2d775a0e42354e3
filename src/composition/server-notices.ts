import { isExemptFromConsent } from '../accounts/index.ts';
import type { ActiveUsers } from '../active-users/index.ts';
import type { Rooms } from '../rooms/index.ts';
import { type NoticeSources, openServerNotices } from '../server-notices/index.ts';
import type { Kernel } from './kernel.ts';
import type { OpenedSlices } from './opened-slices.ts';
import type { Users } from './users.ts';

/** Opens server notices. Must be called before jobs are started. */
export async function startServerNotices(
  kernel: Kernel,
  users: Users,
  rooms: Rooms,
  activeUsers: ActiveUsers | undefined,
  opened: OpenedSlices,
): Promise<void> {
  const { configuration } = kernel;
  const { accounts } = users.accounts;
  const serverNotices = await openServerNotices({
    ...kernel,
    rooms,
    tags: users.tags,
    userExists: (userId) => accounts.userExists(userId),
    options: configuration.serverNotices.server_notices,
    roomVersion: configuration.rooms.default_room_version,
    sources: noticeSources(kernel, users, activeUsers),
  });
  opened.add('server notices', serverNotices);
}

function noticeSources(
  { configuration }: Kernel,
  { accounts: { accounts, consents, lastSeen } }: Users,
  activeUsers: ActiveUsers | undefined,
): NoticeSources {
  const { user_consent: policy, mau_limit_alerting, limit_usage_by_mau } = configuration.accounts;
  const { server_notice_content: content, version } = policy ?? {};
  return {
    lastSeen,
    consent: {
      async hasAgreed(userId) {
        const user = await accounts.getUser(userId);
        return (user !== undefined && isExemptFromConsent(user)) || consents.hasAgreed(userId);
      },
      link: (userId) => consents.link(userId),
    },
    isGuest: async (userId) => (await accounts.getUser(userId))?.isGuest === true,
    ...(policy &&
      content &&
      version && {
        consentOptions: { version, content, toGuests: policy.send_server_notice_to_guests },
      }),
    ...(activeUsers && limit_usage_by_mau && { usageLimit: activeUsers.limit }),
    areLimitAlertsEnabled: mau_limit_alerting,
  };
}
