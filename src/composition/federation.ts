import { EduOutbox, keyRoutes, versionRoute, whitelistRoutes } from '../federation/index.ts';
import {
  type FederationClientSlice,
  openFederationClient,
  trimDestinationsRegularly,
} from '../federation-client/index.ts';
import {
  type OutboundConfig,
  OutboundHttp,
  outboundConfigOfFederation,
  systemResolver,
  TlsSettings,
} from '../kernel/outbound/index.ts';
import { isServerName } from '../protocol/index.ts';
import type { MainKernel } from './kernel.ts';
import type { OpenedSlices } from './opened-slices.ts';
import { loadNotaryKeys, loadSigningKeys } from './signing-key.ts';

/** The federation client, and the other parts of the federation that are opened before the rooms. */
export interface Federation extends FederationClientSlice {
  /** For requests outside the federation, for instance to push gateways. */
  readonly http: OutboundHttp;
  /** Whether a server name is valid, not this server's own, and allowed by the whitelist. */
  readonly isDestination: (serverName: string) => boolean;
  /** Queue of EDUs that must be delivered. */
  readonly outbox: EduOutbox;
}

/** Opens the federation client, the routes for server keys, and the outbox, before the rooms are opened. */
export async function startFederation(kernel: MainKernel, opened: OpenedSlices): Promise<Federation> {
  const { configuration, resolver = systemResolver } = kernel;
  const { authorities } = kernel;
  const tls = authorities && new TlsSettings({ verify: true, authorities });
  const { clock, caches } = kernel;
  const open = (config: OutboundConfig, name: string) =>
    new OutboundHttp({ config, clock, caches, name, resolver, tls });
  const http = open(configuration.outbound, 'connection_pools');
  const federationOutbound = outboundConfigOfFederation(configuration.outbound);
  const federationHttp =
    federationOutbound === configuration.outbound
      ? http
      : open(federationOutbound, 'federation_connection_pools');
  opened.add('outbound requests', {
    stop: async () => {
      await http.close();
      if (federationHttp !== http) await federationHttp.close();
    },
  });
  const client = await openFederationClient({
    ...kernel,
    http: federationHttp,
    resolver,
    log: kernel.namedLog('federation'),
    signingKeys: await loadSigningKeys(kernel),
    options: configuration.federationClient,
  });
  trimDestinationsRegularly(kernel.jobs, kernel);
  opened.add('federation client', {
    routes: [
      versionRoute(),
      ...keyRoutes({ ...kernel, ...client, notaryKeys: await loadNotaryKeys(kernel) }),
      ...whitelistRoutes({ ...configuration.federation, ...configuration.federationClient }),
    ],
  });
  const isDestination = (serverName: string) =>
    serverName !== kernel.serverName && isServerName(serverName) && client.whitelist.allows(serverName);
  const outbox = await EduOutbox.open({ ...kernel, isDestination });
  return { ...client, http, isDestination, outbox };
}
