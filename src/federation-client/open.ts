import type { CacheRegistry } from '../kernel/caches/index.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Database } from '../kernel/database/index.ts';
import type { ServerAuthenticator } from '../kernel/http/index.ts';
import type { Logger } from '../kernel/observability/index.ts';
import type { OutboundHttp, Resolver } from '../kernel/outbound/index.ts';
import type { Randomness } from '../kernel/randomness.ts';
import type { SigningKey } from '../protocol/index.ts';
import { XMatrixAuthenticator } from './authentication/server-authenticator.ts';
import type { FederationClientConfig } from './config.ts';
import { Destinations } from './destinations/destinations.ts';
import { Discovery } from './discovery/discovery.ts';
import { WellKnown } from './discovery/well-known.ts';
import { KeyRing } from './keys/key-ring.ts';
import { OwnKeys } from './keys/own-keys.ts';
import { DomainWhitelist } from './requests/domain-whitelist.ts';
import { FederationClient, type OutboundTracing } from './requests/federation-client.ts';
import { authorize, type SignedParts } from './requests/request-signature.ts';
import { federationTls } from './tls.ts';

export interface FederationClientSliceDeps {
  readonly http: OutboundHttp;
  readonly resolver: Resolver;
  readonly database: Database;
  readonly caches: CacheRegistry;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly log: Logger;
  readonly serverName: string;
  /** Current keys, at least one; the first one signs. */
  readonly signingKeys: readonly SigningKey[];
  readonly options: FederationClientConfig;
  /** Absent where tracing is disabled. */
  readonly tracing?: OutboundTracing | undefined;
}

/** Requests to other servers, what is known about these servers, and the keys of all servers. */
export interface FederationClientSlice {
  readonly requests: FederationClient;
  readonly destinations: Destinations;
  readonly whitelist: DomainWhitelist;
  readonly ownKeys: OwnKeys;
  readonly keys: KeyRing;
  /** Identifies the server that sent a request. */
  readonly serverAuthenticator: ServerAuthenticator;
  /**
   * Returns the `Authorization` header of a request to a server that is not a homeserver; `requests` signs its own
   * requests.
   */
  readonly sign: (request: Omit<SignedParts, 'origin'>) => string;
}

/**
 * Opens the federation client.
 * @throws Error when a file of `federation_custom_ca_list` cannot be used, or there is no signing key
 */
export async function openFederationClient(deps: FederationClientSliceDeps): Promise<FederationClientSlice> {
  const { options, serverName, signingKeys } = deps;
  const [key] = signingKeys;
  if (key === undefined) throw new Error('There is no signing key');
  const tls = await federationTls(options);
  const discovery = new Discovery({ ...deps, wellKnown: new WellKnown({ ...deps, tls }) });
  const destinations = new Destinations({ ...deps, options: options.federation });
  const whitelist = new DomainWhitelist(options.federation_domain_whitelist);
  const shared = { tls, discovery, destinations, whitelist, options: options.federation };
  const requests = new FederationClient({ ...deps, ...shared, signer: { serverName, key } });
  const ownKeys = new OwnKeys(deps);
  const keys = new KeyRing({ ...deps, requests, own: ownKeys, keyServers: options.trusted_key_servers });
  const serverAuthenticator = new XMatrixAuthenticator({ ...deps, keys, whitelist, destinations });
  const sign = (request: Omit<SignedParts, 'origin'>) => authorize({ ...request, origin: serverName }, key);
  return { requests, destinations, whitelist, ownKeys, keys, serverAuthenticator, sign };
}
