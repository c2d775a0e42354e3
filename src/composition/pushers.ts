import { systemResolver } from '../kernel/outbound/index.ts';
import type { MediaSlice } from '../media/index.ts';
import { mailAppId, openPushers, Pushers, plainHttpCheck, subscribeNewUser } from '../pushers/index.ts';
import type { Rooms } from '../rooms/index.ts';
import type { Conversations } from './conversations.ts';
import type { Federation } from './federation.ts';
import type { Kernel } from './kernel.ts';
import { subscribesNewUsers } from './new-subscriptions.ts';
import type { OpenedSlices } from './opened-slices.ts';
import type { OpenedThirdPartyIds } from './third-party-ids.ts';
import { tokenKeyOf } from './token-key.ts';

interface Deps {
  readonly kernel: Kernel;
  readonly pushers: Pushers;
  readonly thirdPartyIds: OpenedThirdPartyIds;
  /** Absent when `enable_media_repo` is off. */
  readonly media: MediaSlice | undefined;
  readonly rooms: Rooms;
  readonly conversations: Conversations;
  readonly federation: Federation;
}

/** Opens the list of pushers. Must be called before accounts are opened, because accounts subscribe new users to mails. */
export function openPusherList(
  kernel: Kernel,
  { thirdPartyIds: { addresses } }: OpenedThirdPartyIds,
): Pushers {
  const pushers = new Pushers({ ...kernel, addresses });
  addresses.onRemoved((writer, userId, { medium, address }) =>
    medium === 'email'
      ? pushers.removeIn(writer, userId, { appId: mailAppId, pushkey: address })
      : Promise.resolve(),
  );
  if (subscribesNewUsers(kernel)) {
    addresses.onAddedToNewUser((writer, userId, address) =>
      subscribeNewUser(pushers, writer, userId, address),
    );
  }
  return pushers;
}

/** Opens pushers, and starts to send notifications. Must be called before jobs are started. */
export async function startPushers(
  { kernel, pushers, thirdPartyIds, media, rooms, conversations, federation }: Deps,
  opened: OpenedSlices,
): Promise<void> {
  const { configuration, resolver = systemResolver } = kernel;
  const slice = await openPushers(
    {
      ...kernel,
      log: kernel.namedLog('push'),
      engine: rooms.engine,
      receipts: conversations.receipts,
      pushers,
      results: { notified: conversations.push.eventNotifications, unread: conversations.push.badgeCounts },
      gateways: {
        http: federation.http,
        allowsPlainHttp: plainHttpCheck(configuration.outbound, resolver),
      },
      mailing: mailingOf(kernel, thirdPartyIds, media),
    },
    configuration.push.push,
  );
  opened.add('pushers', slice);
}

function mailingOf(
  { configuration }: Kernel,
  { thirdPartyIds: { addresses }, routesDeps }: OpenedThirdPartyIds,
  avatars: MediaSlice | undefined,
) {
  const { mails } = routesDeps;
  return mails && { ...routesDeps, mails, addresses, avatars, key: tokenKeyOf(configuration) };
}
