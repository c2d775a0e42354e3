import { EduHandlers, EduOutbox, keyRoutes, versionRoute, whitelistRoutes } from '../federation/index.ts';
import { type FederationClientSlice, openFederationClient } from '../federation-client/index.ts';
import type { Route } from '../kernel/http/index.ts';
import { OutboundHttp, systemResolver, TlsSettings } from '../kernel/outbound/index.ts';
import { isServerName } from '../protocol/index.ts';
import type { Kernel } from './kernel.ts';
import type { Shutdown } from './shutdown.ts';
import { loadNotaryKeys, loadSigningKeys } from './signing-key.ts';

/** The way to other servers. */
export interface Federation extends FederationClientSlice {
  /** For requests that are not of the federation: push gateways and the like. */
  readonly http: OutboundHttp;
  /** Whether there is federation with a server that is not this one. */
  readonly isDestination: (serverName: string) => boolean;
  /** EDUs that must arrive. */
  readonly outbox: EduOutbox;
  /** What is done with the EDUs of other servers. */
  readonly eduHandlers: EduHandlers;
  readonly routes: readonly Route[];
}

/** Opens what speaks with other servers. It is there before the rooms are, and after them. */
export async function startFederation(kernel: Kernel, shutdown: Shutdown): Promise<Federation> {
  const { configuration, resolver = systemResolver } = kernel;
  const { authorities } = kernel;
  const tls = authorities && new TlsSettings({ verify: true, authorities });
  const http = new OutboundHttp({ config: configuration.outbound, clock: kernel.clock, resolver, tls });
  shutdown.add('outbound requests', () => http.close());
  const client = await openFederationClient({
    ...kernel,
    http,
    resolver,
    log: kernel.namedLog('federation'),
    signingKeys: await loadSigningKeys(kernel),
    options: configuration.federationClient,
  });
  const routes = [
    versionRoute(),
    ...keyRoutes({ ...kernel, ...client, notaryKeys: await loadNotaryKeys(kernel) }),
    ...whitelistRoutes({ ...configuration.federation, ...configuration.federationClient }),
  ];
  const isDestination = (serverName: string) =>
    serverName !== kernel.serverName && isServerName(serverName) && client.whitelist.allows(serverName);
  const outbox = await EduOutbox.open({ ...kernel, isDestination });
  const eduHandlers = new EduHandlers(kernel.namedLog('federation'));
  return { ...client, http, isDestination, outbox, eduHandlers, routes };
}
