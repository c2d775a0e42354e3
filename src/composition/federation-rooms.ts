import { EventsApi, PolicyApi } from '../federation-client/index.ts';
import type { OtherServers } from '../room-federation/index.ts';
import type { Federation } from './federation.ts';

/** The way to other servers, as rooms need it. */
export function otherServers({ requests, keys, destinations }: Federation): OtherServers {
  return {
    events: new EventsApi(requests),
    keys,
    health: destinations,
    policies: new PolicyApi(requests),
  };
}
