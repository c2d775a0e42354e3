import { membershipHandshakeRoutes, RoomAccess } from '../federation/index.ts';
import { MembershipApi } from '../federation-client/index.ts';
import type { Route } from '../kernel/http/index.ts';
import { KeyedMutex } from '../kernel/keyed-mutex.ts';
import {
  ComplexityLimit,
  openServing,
  PendingLeaves,
  RemoteMemberships,
  storedStrippedState,
} from '../room-federation/index.ts';
import type { Rooms } from '../rooms/index.ts';
import type { Federation } from './federation.ts';
import type { Kernel } from './kernel.ts';
import type { People } from './people.ts';
import { prejoinKeys } from './rooms.ts';
import { loadSigningKey } from './signing-key.ts';
import type { ThirdPartyServices } from './third-party-invites.ts';

/**
 * Connects joins, knocks and leaves with remote servers, in both directions; to be called before jobs are
 * started.
 */
export async function openHandshakes(
  kernel: Kernel,
  federation: Federation,
  people: People,
  rooms: Rooms,
  { redemption }: Pick<ThirdPartyServices, 'redemption'>,
): Promise<Route[]> {
  const { serverName, database, configuration } = kernel;
  const { engine, incoming, memberships, completion } = rooms;
  const { accounts } = people.accounts;
  const signer = { serverName, key: await loadSigningKey(kernel) };
  const peers = new MembershipApi(federation.requests);
  const log = kernel.namedLog('rooms');
  const roomMutex = new KeyedMutex();
  const pendingLeaves = new PendingLeaves({ ...kernel, engine, peers, signer, roomMutex, log });
  federation.destinations.onReturn((server) => void pendingLeaves.retrySoonFor(server));
  memberships.attach(
    new RemoteMemberships({
      ...kernel,
      engine,
      incoming,
      completion,
      placement: engine.placement,
      peers,
      pendingLeaves: pendingLeaves,
      roomMutex,
      keys: federation.keys,
      signer,
      prejoinKeys: prejoinKeys(kernel),
      strippedState: (roomId, userId) => storedStrippedState(database, roomId, userId),
      complexity: new ComplexityLimit(configuration.rooms.limit_remote_rooms, (userId) =>
        accounts.isAdmin(userId),
      ),
    }),
  );
  return membershipHandshakeRoutes({
    ...rooms,
    access: new RoomAccess({ ...rooms, serverName }),
    state: openServing(rooms.engine, database).state,
    serverName,
    signer,
    prejoinKeys: prejoinKeys(kernel),
    redeem: (roomId, sender, signed) => redemption.invite(roomId, sender, signed),
  });
}
