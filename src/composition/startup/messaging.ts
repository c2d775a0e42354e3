import { startConversations } from '../conversations.ts';
import { startDirectories } from '../directories.ts';
import { startFederationTraffic } from '../federation-traffic.ts';
import type { MainKernel } from '../kernel.ts';
import { startMessages } from '../messages.ts';
import type { OpenedSlices } from '../opened-slices.ts';
import { startPushers } from '../pushers.ts';
import { startRoomUpkeep } from '../rooms.ts';
import { startServerNotices } from '../server-notices.ts';
import { startStatistics } from '../statistics.ts';
import { openThirdPartyInvites } from '../third-party-invites.ts';
import type { Foundation } from './foundation.ts';
import type { UsersAndRooms } from './users-and-rooms.ts';

export type Messaging = Awaited<ReturnType<typeof startMessaging>>;

/** Opens the slices that read rooms for clients, other servers and push gateways, and the upkeep of rooms. */
export async function startMessaging(
  kernel: MainKernel,
  parts: Foundation & UsersAndRooms,
  opened: OpenedSlices,
) {
  const { federation, lookups, modules, media, thirdPartyIds, pushers } = parts;
  const { activeUsers, users, relationIndex, rooms } = parts;
  const conversations = await startConversations(kernel, users, rooms, opened, modules?.presence);
  const mayShow = modules?.mayShowUser;
  const directory = await startDirectories(kernel, users, rooms, lookups, opened, mayShow);
  const messageDeps = { kernel, users, activeUsers, rooms, relationIndex, conversations, opened };
  const messages = await startMessages(messageDeps);
  const upkeep = await startRoomUpkeep(kernel, users, rooms, opened);
  await startServerNotices(kernel, users, rooms, activeUsers, opened);
  const dailyFigures = await startStatistics(kernel, users, rooms, opened);
  const checkInvite = modules?.checkAddressInvite(rooms.engine);
  const thirdParties = openThirdPartyInvites(kernel, users, rooms, federation, opened, checkInvite);
  const sender = await startFederationTraffic({ kernel, federation, rooms, conversations }, opened);
  await startPushers({ kernel, pushers, thirdPartyIds, media, rooms, conversations, federation }, opened);
  return { conversations, directory, ...messages, upkeep, dailyFigures, thirdParties, sender };
}
