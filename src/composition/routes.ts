import { basename } from 'node:path';
import { type AccountsSlice, accountPageRoutes, hasAccounts } from '../accounts/index.ts';
import { consoleRoutes } from '../console/index.ts';
import type { DelayedEvents } from '../delayed-events/index.ts';
import type { Directory } from '../directory/index.ts';
import { WriteCheck } from '../kernel/database/index.ts';
import {
  healthRouteWith,
  metricsRoute,
  type Readiness,
  type Route,
  readinessRoute,
} from '../kernel/http/index.ts';
import type { Pages } from '../kernel/pages/index.ts';
import { ownCommand } from '../kernel/process/index.ts';
import type { OpenIdTokens } from '../openid/index.ts';
import type { CheckReceivedInvite } from '../room-engine/index.ts';
import { type Rooms, roomRoutes } from '../rooms/index.ts';
import { welcomeRoute } from '../welcome/index.ts';
import { maxEventsPerPage } from './conversations.ts';
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
  readonly readiness: Readiness;
  readonly users: Users;
  readonly rooms: Rooms;
  readonly directory: Directory;
  readonly openIdTokens: OpenIdTokens;
  readonly delayedEvents: DelayedEvents;
  readonly thirdParties: ThirdPartyServices;
  /** Checks invites of local users by remote users. */
  readonly checkInvite?: CheckReceivedInvite | undefined;
}

/** Adds the routes that need several slices. */
export async function startRoutes(kernel: Kernel, deps: Deps, opened: OpenedSlices): Promise<void> {
  const { pages, users, rooms, delayedEvents, thirdParties } = deps;
  opened.add('routes over several slices', {
    routes: [
      ...serverRoutes(kernel, deps),
      ...accountPages(kernel, users.accounts, pages),
      ...roomRoutes(rooms, maxEventsPerPage(kernel), delayedEvents, thirdParties.inviting),
      ...(await handshakeRoutes(kernel, rooms, thirdParties, deps.checkInvite)),
      ...federationReadRoutes(kernel, deps),
    ],
  });
}

/** Returns the routes of the welcome page, the checks of health and readiness, static files, the console and the metrics. */
function serverRoutes(
  { configuration, metrics, serverName, database, stateDatabase, clock }: Kernel,
  { pages, readiness }: Deps,
): Route[] {
  const { web_client_location } = configuration.server;
  const databases = [...new Set([database, stateDatabase])];
  const writeChecks = databases.map((checked) => new WriteCheck(checked, clock));
  const outage = async () => {
    const errors = await Promise.all(writeChecks.map((check) => check.error()));
    const error = errors.find((found) => found !== undefined);
    return error === undefined ? undefined : `Cannot write: ${describeOutage(error)}`;
  };
  return [
    healthRouteWith(outage),
    readinessRoute(readiness, outage),
    welcomeRoute(
      {
        serverName,
        webClientLocation: web_client_location ?? undefined,
        // The page is public, so it does not reveal the folder of the program.
        command: basename(ownCommand),
        openRegistration: configuration.accounts.enable_registration,
        needsToken: configuration.accounts.registration_requires_token,
        hasAccounts: () => hasAccounts(database),
      },
      pages,
    ),
    ...staticRoutes,
    ...(configuration.console.admin_console.enabled ? consoleRoutes() : []),
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
