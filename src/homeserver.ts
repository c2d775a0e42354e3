import { type AccountsSlice, hasAccounts } from './accounts/index.ts';
import { auditedRoutes } from './admin/index.ts';
import { startAdmin } from './composition/admin.ts';
import { openAuthenticator, openRegisteredAppservices } from './composition/appservices.ts';
import { openControl } from './composition/control.ts';
import { startConversations } from './composition/conversations.ts';
import { startDirectories } from './composition/directories.ts';
import { startEncryption } from './composition/encryption.ts';
import { type Federation, startFederation } from './composition/federation.ts';
import { openRemoteLookups } from './composition/federation-queries.ts';
import { otherServers } from './composition/federation-rooms.ts';
import { startFederationTraffic } from './composition/federation-traffic.ts';
import { remoteMemberships } from './composition/handshakes.ts';
import { type Environment, type Kernel, openKernel, optionsOf } from './composition/kernel.ts';
import { startMedia } from './composition/media.ts';
import { startMessages } from './composition/messages.ts';
import { reportServer } from './composition/metrics.ts';
import { startModules, supplyModules } from './composition/modules.ts';
import { openOAuthBeforeUsers, startAuthorizationServer } from './composition/oauth.ts';
import { OpenedSlices } from './composition/opened-slices.ts';
import { openOperatorsHttp } from './composition/operators-http.ts';
import { outageForClient, startFailureOf } from './composition/outages.ts';
import { openMailTemplates, openPages } from './composition/pages.ts';
import { openPusherList, startPushers } from './composition/pushers.ts';
import { startRooms, startRoomUpkeep } from './composition/rooms.ts';
import { startRoutes } from './composition/routes.ts';
import { startServerNotices } from './composition/server-notices.ts';
import { Shutdown } from './composition/shutdown.ts';
import { startThirdPartyIds } from './composition/third-party-ids.ts';
import { openThirdPartyInvites } from './composition/third-party-invites.ts';
import { startUrlPreviews } from './composition/url-previews.ts';
import { startUsers } from './composition/users.ts';
import type { HearthConfiguration } from './configuration.ts';
import {
  type Authenticator,
  createHttpServer,
  type HttpServer,
  listenersOf,
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
   * Opens all parts and starts to serve; closes the opened parts again when one fails.
   * @returns the addresses of the listeners, as URLs or `unix:` with a path, and whether a user has an account
   */
  start(): Promise<{ readonly addresses: readonly string[]; readonly hasAccounts: boolean }>;
  /** Completes running requests and writes, and closes all parts in reverse order. */
  stop(): Promise<void>;
  /** Applies options that may change at run time, and reads certificates and templates again. */
  reload(configuration: HearthConfiguration): Promise<void>;
  /** The routes of the running server. */
  readonly routes: readonly Route[];
}

/** Assembles a homeserver. */
export function createHomeserver(environment: Environment): Homeserver {
  const shutdown = new Shutdown(environment.log);
  let running:
    | {
        readonly kernel: Kernel;
        readonly http: HttpServer;
        readonly templates: readonly { reload(): void }[];
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
        const federation = await startFederation(kernel, opened);
        const lookups = openRemoteLookups(kernel, federation);
        const media = await startMedia(kernel, federation, opened);
        startUrlPreviews(kernel, media, opened);
        const mailTemplates = openMailTemplates(kernel.configuration.mail);
        const appservices = await openRegisteredAppservices(kernel, opened);
        const oauth = openOAuthBeforeUsers(kernel, opened);
        const thirdPartyIds = startThirdPartyIds(kernel, federation, mailTemplates);
        const pushers = openPusherList(kernel, thirdPartyIds);
        const pages = openPages(kernel.configuration.mail.templates.custom_template_directory);
        const providerHttp = openOperatorsHttp(kernel, 'identity_provider_connection_pools');
        opened.add('requests to identity providers', { stop: () => providerHttp.close() });
        const modules = await startModules(kernel, federation.http, opened);
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
          browsers: { pages, pictures: media },
        });
        const relationIndex = new RelationIndex(kernel.database, kernel.serverName, kernel.caches);
        const rooms = await startRooms(kernel, users, relationIndex, opened, {
          remoteAliases: lookups.aliases,
          aliasReservations: appservices.aliasReservations,
          otherServers: otherServers(federation),
          openRemoteMemberships: await remoteMemberships(kernel, federation, users),
          extendRules: modules?.directoryRules,
        });
        supplyModules(modules, users, rooms);
        const encryption = await startEncryption(kernel, users, rooms, federation, opened);
        opened.add(
          'profile requests',
          openProfileRequests(users.profiles, rooms.engine, kernel.configuration.profiles),
        );
        const conversations = await startConversations(kernel, users, rooms, opened);
        const directory = await startDirectories(kernel, users, rooms, lookups, opened);
        const messageDeps = { kernel, users, rooms, relationIndex, conversations, opened };
        const { delayedEvents, openIdTokens, reports } = await startMessages(messageDeps);
        const upkeep = await startRoomUpkeep(kernel, users, rooms, opened);
        await startServerNotices(kernel, users, rooms, opened);
        const thirdParties = openThirdPartyInvites(kernel, users, rooms, federation, opened);
        const sender = await startFederationTraffic({ kernel, federation, rooms, conversations }, opened);
        await startPushers(
          { kernel, pushers, thirdPartyIds, media, rooms, conversations, federation },
          opened,
        );
        startAdmin(
          {
            kernel,
            users,
            pushers,
            addresses: thirdPartyIds.thirdPartyIds.addresses,
            rooms,
            upkeep,
            directory,
            sender,
            media,
            reports,
            federation,
          },
          opened,
        );
        startAuthorizationServer(kernel, { ...users, ...oauth, addresses: thirdPartyIds }, pages, opened);
        const { sawService } = await appservices.start({ users, rooms, conversations, encryption }, opened);
        opened.add('jobs', kernel.jobs);
        await startRoutes(
          kernel,
          { pages, users, rooms, directory, openIdTokens, delayedEvents, thirdParties },
          opened,
        );
        await opened.start();
        reportServer(kernel, rooms.engine);
        const served = oauth.service ? withoutLocalLogins(opened.routes) : opened.routes;
        routes = auditedRoutes(served, kernel.namedLog('admin'));
        const { registry } = appservices;
        const authenticator = await openAuthenticator(kernel, registry, users.accounts, sawService);
        const http = createHttp(kernel, authenticator, federation, routes, pages, modules);
        opened.add('http', { stop: () => http.stop() });
        const addresses = await http.start();
        await startManhole(kernel, users.accounts, opened);
        const control = await openControl(kernel);
        opened.add('control socket', { stop: () => control?.close() });
        running = { kernel, http, templates: [pages, mailTemplates] };
        return { addresses, hasAccounts: await hasAccounts(kernel.database) };
      } catch (error) {
        await shutdown.run();
        throw startFailureOf(error, optionsOf(environment));
      }
    },

    async stop() {
      running = undefined;
      await shutdown.run();
    },

    async reload(configuration) {
      running?.kernel.caches.configure(configuration.caches);
      for (const templates of running?.templates ?? []) templates.reload();
      await running?.http.reload();
    },
  };
}

/** Starts the debugging console, whose code is loaded only if it is enabled. */
async function startManhole(kernel: Kernel, accounts: AccountsSlice, opened: OpenedSlices): Promise<void> {
  const { process, http } = kernel.configuration;
  if (process.manhole === null && !http.listeners.some(({ type }) => type === 'manhole')) return;
  const { openManhole } = await import('./composition/manhole.ts');
  const manhole = await openManhole(kernel.configuration, { kernel, accounts }, kernel.log);
  opened.add('manhole', { stop: () => manhole?.close() });
}

function createHttp(
  kernel: Kernel,
  authenticator: Authenticator,
  federation: Federation,
  routes: readonly Route[],
  pages: Pages,
  modules: ModulesSlice | undefined,
): HttpServer {
  const { configuration, namedLog, clock, metrics } = kernel;
  return createHttpServer({
    listeners: listenersOf(configuration.http, modules?.additionalRoutes),
    routes,
    authenticator,
    serverAuthenticator: federation.serverAuthenticator,
    serverAdmission: new ServerLimiter(configuration.rateLimits.rc_federation, clock),
    errorPage: pages.errorPage,
    explainFailure: (error) => outageForClient(error, configuration.accounts.admin_contact),
    log: namedLog('http'),
    clock,
    metrics,
  });
}
