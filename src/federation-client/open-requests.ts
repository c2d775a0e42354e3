import type { CacheRegistry } from '../kernel/caches/index.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Database } from '../kernel/database/index.ts';
import type { Logger } from '../kernel/observability/index.ts';
import type { OutboundHttp, Resolver } from '../kernel/outbound/index.ts';
import type { Randomness } from '../kernel/randomness.ts';
import type { SigningKey } from '../protocol/index.ts';
import type { FederationClientConfig } from './config.ts';
import { Destinations } from './destinations/destinations.ts';
import { Discovery } from './discovery/discovery.ts';
import { WellKnown } from './discovery/well-known.ts';
import { DomainWhitelist } from './requests/domain-whitelist.ts';
import { FederationClient } from './requests/federation-client.ts';
import { federationTls } from './tls.ts';

export interface FederationClientSliceDeps {
  readonly http: OutboundHttp;
  readonly resolver: Resolver;
  readonly database: Database;
  readonly caches: CacheRegistry;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly log: Logger;
  /** This server, and the key with which it signs requests. */
  readonly signer: { readonly serverName: string; readonly key: SigningKey };
  readonly options: FederationClientConfig;
}

/** Requests to other servers, and what is known about these. */
export interface FederationRequests {
  readonly requests: FederationClient;
  readonly destinations: Destinations;
  readonly whitelist: DomainWhitelist;
}

/** @throws when a file of `federation_custom_ca_list` can not be read */
export async function openFederationRequests(deps: FederationClientSliceDeps): Promise<FederationRequests> {
  const { options } = deps;
  const tls = await federationTls(options);
  const discovery = new Discovery({ ...deps, wellKnown: new WellKnown({ ...deps, tls }) });
  const destinations = new Destinations({ ...deps, options: options.federation });
  const whitelist = new DomainWhitelist(options.federation_domain_whitelist);
  const shared = { tls, discovery, destinations, whitelist, options: options.federation };
  return { requests: new FederationClient({ ...deps, ...shared }), destinations, whitelist };
}
