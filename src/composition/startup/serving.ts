import { auditedRoutes } from '../../admin/index.ts';
import {
  createHttpServer,
  type HttpServer,
  listenersOf,
  type Readiness,
  type Route,
} from '../../kernel/http/index.ts';
import { ServerLimiter } from '../../kernel/rate-limits/index.ts';
import { withoutLocalLogins } from '../../oauth/index.ts';
import { openAuthenticator } from '../appservices.ts';
import { gatedRoutes } from '../gated-routes.ts';
import type { MainKernel } from '../kernel.ts';
import { reportServer } from '../metrics.ts';
import { startAuthorizationServer } from '../oauth.ts';
import type { OpenedSlices } from '../opened-slices.ts';
import { outageForClient } from '../outages.ts';
import { startRoutes } from '../routes.ts';
import type { startAdministration } from './administration.ts';
import type { Foundation } from './foundation.ts';
import type { Messaging } from './messaging.ts';
import type { UsersAndRooms } from './users-and-rooms.ts';

type Parts = Foundation & UsersAndRooms & Messaging;

/**
 * Opens the last slices, which need all others, and starts the background work of all slices.
 * @returns a function that ends the backoff of an application service that has shown that it is up
 */
export async function startLastSlices(
  kernel: MainKernel,
  parts: Parts,
  readiness: Readiness,
  opened: OpenedSlices,
) {
  const { appservices, oauth, pages, modules, thirdPartyIds, users, rooms, conversations, encryption } =
    parts;
  startAuthorizationServer(kernel, { ...users, ...oauth, addresses: thirdPartyIds }, pages, opened);
  const following = { users, rooms, conversations, encryption };
  const { endServiceBackoff } = await appservices.start(following, opened);
  opened.add('jobs', kernel.jobs);
  await startRoutes(kernel, { ...parts, readiness, checkInvite: modules?.checkReceivedInvite }, opened);
  await opened.start();
  reportServer(kernel, rooms.engine);
  return endServiceBackoff;
}

/** Opens the HTTP server, which does not listen yet. @returns the server, and all routes that it answers */
export async function openHttp(
  kernel: MainKernel,
  parts: Parts & ReturnType<typeof startAdministration>,
  endServiceBackoff: (serviceId: string) => void,
  opened: OpenedSlices,
): Promise<{ readonly http: HttpServer; readonly routes: readonly Route[] }> {
  const { configuration, namedLog, clock, metrics, tracing } = kernel;
  const { federation, modules, appservices, oauth, pages, users, activeUsers, audit, views } = parts;
  const served = oauth.service ? withoutLocalLogins(opened.routes) : opened.routes;
  const gated = gatedRoutes(served, kernel, users, activeUsers);
  const routes = auditedRoutes(gated, audit, namedLog('admin'));
  const { registry } = appservices;
  const ownAuthenticator = await openAuthenticator(kernel, registry, users.accounts, endServiceBackoff);
  const http = createHttpServer({
    listeners: listenersOf(configuration.http, modules?.additionalRoutes),
    routes,
    authenticator: modules?.authenticator(ownAuthenticator) ?? ownAuthenticator,
    counts: views.requests,
    serverAuthenticator: federation.serverAuthenticator,
    serverAdmission: new ServerLimiter(configuration.rateLimits.rc_federation, clock),
    errorPage: pages.errorPage,
    explainFailure: (error) => outageForClient(error, configuration.accounts.admin_contact),
    log: namedLog('http'),
    clock,
    metrics,
    tracing,
  });
  opened.add('http', { stop: () => http.stop() });
  return { http, routes };
}
