import { boolean, integer, list, option, section, string } from '../kernel/config/index.ts';

/** Options about requests of other servers, and about EDUs that this server sends to them. */
export const federationSection = section({
  title: 'Federation with other servers',
  options: {
    federation_whitelist_endpoint_enabled: option(boolean(), {
      description:
        'Shows logged-in users the servers of `federation_domain_whitelist`, at `/_server/client/v1/config/federation_whitelist`.',
      default: false,
    }),
    federation_metrics_domains: option(list(string({ minLength: 1 })), {
      description:
        'Names of servers. The metrics include the age of events when they are sent to these servers or received from them.',
      default: [],
    }),
    federation_rr_transactions_per_room_per_second: option(integer({ minimum: 1 }), {
      description:
        'Maximum rate at which read receipts of a room are sent to other servers; receipts that arrive in between are sent together.',
      default: 50,
      unit: 'transactions per second and room',
    }),
  },
});
