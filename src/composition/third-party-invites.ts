import { errorForClient, MembershipApi } from '../federation-client/index.ts';
import { IdentityServers } from '../identity-servers/index.ts';
import { administratorRight } from '../kernel/http/index.ts';
import type { Rooms, ThirdPartyInviting } from '../rooms/index.ts';
import {
  type CheckAddressInvite,
  OnBind,
  onBindRoute,
  Redemption,
  ThirdPartyInvites,
} from '../third-party-invites/index.ts';
import type { Federation } from './federation.ts';
import type { Kernel } from './kernel.ts';
import type { OpenedSlices } from './opened-slices.ts';
import type { Users } from './users.ts';

/** Third-party invites, as the other slices need them. */
export interface ThirdPartyServices {
  readonly inviting: ThirdPartyInviting;
  /** Turns invites of addresses into invites of users, when the servers of the invited users request it. */
  readonly redemption: Redemption;
}

/** Opens invites by mail address and phone number. */
export function openThirdPartyInvites(
  kernel: Kernel,
  users: Users,
  rooms: Rooms,
  federation: Federation,
  opened: OpenedSlices,
  checkInvite?: CheckAddressInvite,
): ThirdPartyServices {
  const { configuration, serverName } = kernel;
  const { accounts } = users.accounts;
  const identityServers = new IdentityServers(federation.http);
  const peers = new MembershipApi(federation.requests);
  const redemption = new Redemption({
    ...rooms,
    identityServers,
    serverName,
    exchange: (server, roomId, event) =>
      peers.exchangeThirdPartyInvite(server, roomId, event).catch((error: unknown) => {
        throw errorForClient(error);
      }),
  });
  const limit = kernel.userLimiter(configuration.rateLimits.rc_third_party_invite);
  const log = kernel.namedLog('rooms');
  const inviting = new ThirdPartyInvites({
    ...rooms,
    identityServers,
    redemption,
    users: { isAdmin: administratorRight((userId) => accounts.isAdmin(userId)) },
    options: {
      ...configuration.accounts,
      ...configuration.rooms,
      webClient: configuration.mail.email?.invite_client_location ?? undefined,
    },
    limit,
    log,
    checkInvite,
  });
  const onBind = new OnBind({ redemption, serverName, limit, log });
  opened.add('third-party invites', { routes: [onBindRoute(onBind)] });
  return { inviting, redemption };
}
