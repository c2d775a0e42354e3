import { type AccountsSlice, hasAccounts } from './accounts/index.ts';
import { auditedRoutes } from './admin/index.ts';
import { startActiveUsers } from './composition/active-users.ts';
import { startAdmin } from './composition/admin.ts';
import { openAuthenticator, openRegisteredAppservices } from './composition/appservices.ts';
import { openControl } from './composition/control.ts';
import { startConversations } from './composition/conversations.ts';
import { startDirectories } from './composition/directories.ts';
import { startEncryption } from './composition/encryption.ts';
import { startErrorReports } from './composition/error-reports.ts';
import { type Federation, startFederation } from './composition/federation.ts';
import { openRemoteLookups } from './composition/federation-queries.ts';
import { otherServers } from './composition/federation-rooms.ts';
import { startFederationTraffic } from './composition/federation-traffic.ts';
import { gatedRoutes } from './composition/gated-routes.ts';
import { remoteMemberships } from './composition/handshakes.ts';
import { openHttpToConfiguredServers } from './composition/http-to-configured-servers.ts';
import {
  databaseOptionsOf,
  type Environment,
  type Kernel,
  type MainKernel,
  openKernel,
} from './composition/kernel.ts';
import { startMedia } from './composition/media.ts';
import { startMessages } from './composition/messages.ts';
import { reportServer } from './composition/metrics.ts';
import { startModules, supplyModules } from './composition/modules.ts';
import { openOAuthBeforeUsers, startAuthorizationServer } from './composition/oauth.ts';
import { OpenedSlices } from './composition/opened-slices.ts';
import { outageForClient, startFailureOf } from './composition/outages.ts';
import { openMailTemplates, openPages } from './composition/pages.ts';
import { openPusherList, startPushers } from './composition/pushers.ts';
import { startRooms, startRoomUpkeep } from './composition/rooms.ts';
import { startRoutes } from './composition/routes.ts';
import { startServerNotices } from './composition/server-notices.ts';
import { type ServerViews, startServerViews } from './composition/server-views.ts';
import { Shutdown } from './composition/shutdown.ts';
import { startStatistics } from './composition/statistics.ts';
import { startThirdPartyIds } from './composition/third-party-ids.ts';
import { openThirdPartyInvites } from './composition/third-party-invites.ts';
import { startUrlPreviews } from './composition/url-previews.ts';
import { startUsers } from './composition/users.ts';
import type { HearthConfiguration } from './configuration.ts';
import type { OptionPlaces } from './kernel/config/index.ts';
import {
  createHttpServer,
  type HttpServer,
  type HttpServerOptions,
  listenersOf,
  Readiness,
  type Route,
} from './kernel/http/index.ts';
import type { Pages } from './kernel/pages/index.ts';
import { ServerLimiter } from './kernel/rate-limits/index.ts';
import type { ModulesSlice } from './modules/index.ts';
import { withoutLocalLogins } from './oauth/index.ts';
import { openProfileRequests } from './profiles/index.ts';
import { RelationIndex } from './relations/index.ts';

export type { Environment } from './composition/kernel.ts';

export interface Homeserver {
  /**
   * Opens all parts and starts to serve. When a part fails, closes the parts that are open.
   * @returns the addresses of the listeners, as URLs or `unix:` with a path, and whether there is an account
   */
  start(): Promise<{ readonly addresses: readonly string[]; readonly hasAccounts: boolean }>;
  /** Completes running requests and writes, and closes all parts in reverse order. */
  stop(): Promise<void>;
  /**
   * Applies options that may change at run time, and reads certificates, templates and registration files again.
   * @param origins the file and the line of each reloaded option, which the admin API shows
   */
  reload(configuration: HearthConfiguration, origins?: OptionPlaces): Promise<void>;
  /** The routes of the running server. */
  readonly routes: readonly Route[];
}

/** Assembles a homeserver. @param origins the file and the line of each given option, which the admin API shows */
export function createHomeserver(environment: Environment, origins: OptionPlaces = new Map()): Homeserver {
  const shutdown = new Shutdown(environment.log);
  const readiness = new Readiness();
  let running:
    | {
        readonly kernel: Kernel;
        readonly http: HttpServer;
        readonly views: ServerViews;
        /** The parts that read their files again at a reload. */
        readonly reloadedParts: readonly { reload(): void }[];
      }
    | undefined;
  let routes: readonly Route[] = [];
  return {
    get routes() {
      return routes;
    },

    async start() {
      try {
        const kernel = await openKernel(environment, shutdown);
        const opened = new OpenedSlices(shutdown);
        await startErrorReports(kernel, opened);
        const federation = await startFederation(kernel, opened);
        const lookups = openRemoteLookups(kernel, federation);
        const modules = await startModules(kernel, federation.http, opened);
        const media = await startMedia(kernel, federation, opened, modules?.media);
        startUrlPreviews(kernel, media, opened);
        const mailTemplates = openMailTemplates(kernel.configuration.mail);
        const appservices = await openRegisteredAppservices(kernel, opened);
        const oauth = openOAuthBeforeUsers(kernel, opened);
        const thirdPartyIds = startThirdPartyIds(kernel, federation, mailTemplates, modules?.addresses);
        const pushers = openPusherList(kernel, thirdPartyIds);
        const pages = openPages(kernel.configuration.mail.templates.custom_template_directory);
        const providerHttp = openHttpToConfiguredServers(kernel, 'identity_provider_connection_pools');
        opened.add('requests to identity providers', { stop: () => providerHttp.close() });
        const activeUsers = await startActiveUsers(kernel, thirdPartyIds, opened);
        const users = startUsers(kernel, opened, {
          appservices,
          remoteProfiles: lookups.profiles,
          avatarFiles: media,
          addresses: thirdPartyIds,
          pushers,
          oauth,
          http: federation.http,
          providerHttp,
          modules: modules?.accounts,
          activeUsers,
          browsers: { pages, pictures: media, mappers: modules?.mappers },
        });
        const relationIndex = new RelationIndex(kernel.database, kernel.serverName, kernel.caches);
        const rooms = await startRooms(kernel, users, relationIndex, opened, {
          federation: {
            remoteAliases: lookups.aliases,
            otherServers: otherServers(federation),
            openRemoteMemberships: await remoteMemberships(kernel, federation, users),
          },
          aliasReservations: appservices.aliasReservations,
          extendRules: modules?.directoryRules,
          ...modules?.rooms,
        });
        supplyModules(modules, users, rooms, thirdPartyIds);
        const encryption = await startEncryption(kernel, users, rooms, federation, opened);
        opened.add(
          'profile requests',
          openProfileRequests(users.profiles, rooms.engine, kernel.configuration.profiles),
        );
        const conversations = await startConversations(kernel, users, rooms, opened, modules?.presence);
        const mayShow = modules?.mayShowUser;
        const directory = await startDirectories(kernel, users, rooms, lookups, opened, mayShow);
        const messageDeps = { kernel, users, activeUsers, rooms, relationIndex, conversations, opened };
        const { delayedEvents, openIdTokens, reports } = await startMessages(messageDeps);
        const upkeep = await startRoomUpkeep(kernel, users, rooms, opened);
        await startServerNotices(kernel, users, rooms, activeUsers, opened);
        const dailyFigures = await startStatistics(kernel, users, rooms, opened);
        const checkAddressInvite = modules?.checkAddressInvite(rooms.engine);
        const thirdParties = openThirdPartyInvites(
          kernel,
          users,
          rooms,
          federation,
          opened,
          checkAddressInvite,
        );
        const sender = await startFederationTraffic({ kernel, federation, rooms, conversations }, opened);
        await startPushers(
          { kernel, pushers, thirdPartyIds, media, rooms, conversations, federation },
          opened,
        );
        const audit = startAdmin(
          {
            kernel,
            userServices: {
              users,
              pushers,
              addresses: thirdPartyIds.thirdPartyIds.addresses,
              encryption,
              resets: oauth.resets,
            },
            roomServices: { rooms, upkeep, directory, reports },
            federation,
            sender,
            media,
            modules: modules?.administration,
          },
          opened,
        );
        const views = startServerViews(kernel, { rooms, sender, dailyFigures, origins }, opened);
        startAuthorizationServer(kernel, { ...users, ...oauth, addresses: thirdPartyIds }, pages, opened);
        const { endServiceBackoff } = await appservices.start(
          { users, rooms, conversations, encryption },
          opened,
        );
        opened.add('jobs', kernel.jobs);
        await startRoutes(
          kernel,
          {
            pages,
            readiness,
            users,
            rooms,
            directory,
            openIdTokens,
            delayedEvents,
            thirdParties,
            checkInvite: modules?.checkReceivedInvite,
          },
          opened,
        );
        await opened.start();
        reportServer(kernel, rooms.engine);
        const served = oauth.service ? withoutLocalLogins(opened.routes) : opened.routes;
        const gated = gatedRoutes(served, kernel, users, activeUsers);
        routes = auditedRoutes(gated, audit, kernel.namedLog('admin'));
        const { registry } = appservices;
        const ownAuthenticator = await openAuthenticator(kernel, registry, users.accounts, endServiceBackoff);
        const authenticator = modules?.authenticator(ownAuthenticator) ?? ownAuthenticator;
        const answering = { routes, authenticator, counts: views.requests };
        const http = createHttp(kernel, answering, federation, pages, modules);
        opened.add('http', { stop: () => http.stop() });
        const addresses = await http.start();
        await startManhole(kernel, users.accounts, opened);
        const control = await openControl(kernel);
        opened.add('control socket', { stop: () => control?.close() });
        running = { kernel, http, views, reloadedParts: [pages, mailTemplates, appservices] };
        readiness.started();
        return { addresses, hasAccounts: await hasAccounts(kernel.database) };
      } catch (error) {
        await shutdown.run();
        throw startFailureOf(error, databaseOptionsOf(environment));
      }
    },

    async stop() {
      running = undefined;
      readiness.stopping();
      await shutdown.run();
    },

    async reload(configuration, reloaded = origins) {
      running?.kernel.caches.configure(configuration.caches);
      running?.views.show(configuration, reloaded);
      for (const part of running?.reloadedParts ?? []) part.reload();
      await running?.http.reload();
    },
  };
}

/** Starts the debugging console, whose code is loaded only if it is enabled. */
async function startManhole(kernel: Kernel, accounts: AccountsSlice, opened: OpenedSlices): Promise<void> {
  const { process, http } = kernel.configuration;
  if (process.manhole === null && !http.listeners.some(({ type }) => type === 'manhole')) return;
  const { openManhole } = await import('./composition/manhole/manhole.ts');
  const { configuration, clock, log } = kernel;
  const manhole = await openManhole({ configuration, context: { kernel, accounts }, clock, log });
  opened.add('manhole', { stop: () => manhole?.close() });
}

function createHttp(
  kernel: MainKernel,
  answering: Pick<HttpServerOptions, 'routes' | 'authenticator' | 'counts'>,
  federation: Federation,
  pages: Pages,
  modules: ModulesSlice | undefined,
): HttpServer {
  const { configuration, namedLog, clock, metrics, tracing } = kernel;
  return createHttpServer({
    listeners: listenersOf(configuration.http, modules?.additionalRoutes),
    ...answering,
    serverAuthenticator: federation.serverAuthenticator,
    serverAdmission: new ServerLimiter(configuration.rateLimits.rc_federation, clock),
    errorPage: pages.errorPage,
    explainFailure: (error) => outageForClient(error, configuration.accounts.admin_contact),
    log: namedLog('http'),
    clock,
    metrics,
    tracing,
  });
}
