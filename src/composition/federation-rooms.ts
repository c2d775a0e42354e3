import { EventsApi, MembershipApi, PolicyApi } from '../federation-client/index.ts';
import type { OtherServers } from '../room-federation/index.ts';
import type { Federation } from './federation.ts';

/** Returns the services through which rooms send requests to remote servers. */
export function otherServers({ requests, keys, destinations }: Federation): OtherServers {
  return {
    events: new EventsApi(requests),
    keys,
    health: destinations,
    policies: new PolicyApi(requests),
    memberships: new MembershipApi(requests),
  };
}
