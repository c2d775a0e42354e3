import { type AccountsSlice, accountPageRoutes, hasAccounts } from '../accounts/index.ts';
import type { DelayedEvents } from '../delayed-events/index.ts';
import type { Directory } from '../directory/index.ts';
import { WriteCheck } from '../kernel/database/index.ts';
import { healthRouteWith, metricsRoute, type Route } from '../kernel/http/index.ts';
import type { Pages } from '../kernel/pages/index.ts';
import type { OpenIdTokens } from '../openid/index.ts';
import { type Rooms, roomRoutes } from '../rooms/index.ts';
import { welcomeRoute } from '../welcome/index.ts';
import { maxEvents } from './conversations.ts';
import { federationReadRoutes } from './federation-queries.ts';
import { handshakeRoutes } from './handshakes.ts';
import type { Kernel } from './kernel.ts';
import type { OpenedSlices } from './opened-slices.ts';
import { describeOutage } from './outages.ts';
import { staticRoutes } from './pages.ts';
import type { ThirdPartyServices } from './third-party-invites.ts';
import type { Users } from './users.ts';

interface Deps {
  readonly pages: Pages;
  readonly users: Users;
  readonly rooms: Rooms;
  readonly directory: Directory;
  readonly openIdTokens: OpenIdTokens;
  readonly delayedEvents: DelayedEvents;
  readonly thirdParties: ThirdPartyServices;
}

/** Adds the routes that need several slices. */
export async function startRoutes(kernel: Kernel, deps: Deps, opened: OpenedSlices): Promise<void> {
  const { pages, users, rooms, delayedEvents, thirdParties } = deps;
  opened.add('routes over several slices', {
    routes: [
      ...ownRoutes(kernel, pages),
      ...accountPages(kernel, users.accounts, pages),
      ...roomRoutes(rooms, maxEvents(kernel), delayedEvents, thirdParties.inviting),
      ...(await handshakeRoutes(kernel, rooms, thirdParties)),
      ...federationReadRoutes(kernel, deps),
    ],
  });
}

/** The welcome page, static files, the health check and the metrics. */
function ownRoutes({ configuration, metrics, serverName, database, clock }: Kernel, pages: Pages): Route[] {
  const { web_client_location } = configuration.server;
  const writing = new WriteCheck(database, clock);
  return [
    healthRouteWith(async () => {
      const error = await writing.error();
      return error === undefined ? undefined : `Cannot write: ${describeOutage(error)}`;
    }),
    welcomeRoute(
      {
        serverName,
        webClientLocation: web_client_location ?? undefined,
        openRegistration: configuration.accounts.enable_registration,
        hasAccounts: () => hasAccounts(database),
      },
      pages,
    ),
    ...staticRoutes,
    ...(metrics ? [metricsRoute(metrics)] : []),
  ];
}

function accountPages(kernel: Kernel, slice: AccountsSlice, pages: Pages): Route[] {
  const { configuration, randomness, serverName } = kernel;
  const { public_baseurl, web_client_location } = configuration.server;
  return accountPageRoutes(
    { slice, pages, randomness, webClient: web_client_location ?? undefined },
    { ...configuration.accounts, server_name: serverName, public_baseurl },
  );
}
