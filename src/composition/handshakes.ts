import { membershipHandshakeRoutes, RoomAccess } from '../federation/index.ts';
import { MembershipApi } from '../federation-client/index.ts';
import { administratorRight, type Route } from '../kernel/http/index.ts';
import { KeyedMutex } from '../kernel/keyed-mutex.ts';
import type { CheckReceivedInvite } from '../room-engine/index.ts';
import {
  ComplexityLimit,
  openServing,
  PendingLeaves,
  RemoteMemberships,
  storedStrippedState,
} from '../room-federation/index.ts';
import type { OpenRemoteMemberships, Rooms } from '../rooms/index.ts';
import type { Federation } from './federation.ts';
import type { Kernel } from './kernel.ts';
import { prejoinStateKeys } from './rooms.ts';
import { loadSigningKey } from './signing-key.ts';
import type { ThirdPartyServices } from './third-party-invites.ts';
import type { Users } from './users.ts';

/**
 * Returns a function for `openRooms`. It opens the service for joins, knocks, leaves and invites of local users in
 * rooms of remote servers.
 */
export async function remoteMemberships(
  kernel: Kernel,
  federation: Federation,
  { accounts: { accounts } }: Pick<Users, 'accounts'>,
): Promise<OpenRemoteMemberships> {
  const { serverName, database, configuration } = kernel;
  const signer = { serverName, key: await loadSigningKey(kernel) };
  const peers = new MembershipApi(federation.requests);
  const log = kernel.namedLog('rooms');
  const roomMutex = new KeyedMutex();
  return ({ engine, incoming, completion }) => {
    const pendingLeaves = new PendingLeaves({ ...kernel, engine, peers, signer, roomMutex, log });
    federation.destinations.onReturn((server) => void pendingLeaves.retrySoonFor(server));
    return new RemoteMemberships({
      ...kernel,
      engine,
      incoming,
      completion,
      placement: engine.placement,
      peers,
      pendingLeaves,
      roomMutex,
      keys: federation.keys,
      signer,
      prejoinStateKeys: prejoinStateKeys(kernel),
      strippedState: (roomId, userId) => storedStrippedState(database, roomId, userId),
      complexity: new ComplexityLimit(
        configuration.rooms.limit_remote_rooms,
        administratorRight((userId) => accounts.isAdmin(userId)),
      ),
    });
  };
}

/** Routes that let remote servers join, knock, leave and invite. */
export async function handshakeRoutes(
  kernel: Kernel,
  rooms: Rooms,
  { redemption }: Pick<ThirdPartyServices, 'redemption'>,
  checkInvite?: CheckReceivedInvite,
): Promise<Route[]> {
  const { serverName, database } = kernel;
  return membershipHandshakeRoutes({
    ...rooms,
    access: new RoomAccess({ ...rooms, serverName }),
    state: openServing(rooms.engine, database).state,
    serverName,
    signer: { serverName, key: await loadSigningKey(kernel) },
    prejoinStateKeys: prejoinStateKeys(kernel),
    checkInvite,
    redeemThirdPartyInvite: (roomId, sender, signed) => redemption.invite(roomId, sender, signed),
  });
}
