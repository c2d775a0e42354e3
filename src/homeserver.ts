import type { AccountsSlice } from './accounts/index.ts';
import { conversationRoutes, startConversations } from './composition/conversations.ts';
import { startDirectories } from './composition/directories.ts';
import { encryptionRoutes, startEncryption } from './composition/encryption.ts';
import { type Federation, startFederation } from './composition/federation.ts';
import { federationReadRoutes, openRemoteLookups } from './composition/federation-queries.ts';
import { otherServers } from './composition/federation-rooms.ts';
import { startFederationTraffic } from './composition/federation-traffic.ts';
import { handshakeRoutes, remoteMemberships } from './composition/handshakes.ts';
import { type Environment, type Kernel, openKernel } from './composition/kernel.ts';
import { startMedia } from './composition/media.ts';
import { startMessages } from './composition/messages.ts';
import { openPages, staticRoutes } from './composition/pages.ts';
import { openRoomPurge } from './composition/room-purge.ts';
import { runJobsOfAccounts, startRooms } from './composition/rooms.ts';
import { startServerNotices } from './composition/server-notices.ts';
import { Shutdown } from './composition/shutdown.ts';
import { openThirdPartyInvites } from './composition/third-party-invites.ts';
import { startUsers, userRoutes } from './composition/users.ts';
import type { HearthConfiguration } from './configuration.ts';
import {
  acceptTokens,
  createHttpServer,
  type HttpServer,
  healthRoute,
  listenersOf,
  metricsRoute,
  type Route,
} from './kernel/http/index.ts';
import type { Pages } from './kernel/pages/index.ts';
import { ServerLimiter } from './kernel/rate-limits/index.ts';
import { RelationIndex } from './relations/index.ts';
import { welcomeRoute } from './welcome/index.ts';

export type { Environment } from './composition/kernel.ts';

export interface Homeserver {
  /**
   * Opens all parts and starts to serve; closes the opened parts again when one fails.
   * @returns the addresses of the listeners, as URLs or `unix:` with a path
   */
  start(): Promise<{ readonly addresses: readonly string[] }>;
  /** Completes running requests and writes, and closes all parts in reverse order. */
  stop(): Promise<void>;
  /** Applies options that may change at run time, and reads certificates and templates again. */
  reload(configuration: HearthConfiguration): Promise<void>;
}

/** Assembles a homeserver. */
export function createHomeserver(environment: Environment): Homeserver {
  const shutdown = new Shutdown(environment.log);
  let running: { readonly kernel: Kernel; readonly http: HttpServer; readonly pages: Pages } | undefined;
  return {
    async start() {
      try {
        const kernel = await openKernel(environment, shutdown);
        const federation = await startFederation(kernel, shutdown);
        const lookups = openRemoteLookups(kernel, federation);
        const media = await startMedia(kernel, federation, shutdown);
        const users = startUsers(kernel, shutdown, lookups.profiles, media.repository);
        const relationIndex = new RelationIndex(kernel.database, kernel.serverName);
        const rooms = await startRooms(kernel, users, relationIndex, shutdown, {
          remoteAliases: lookups.aliases,
          otherServers: otherServers(federation),
          openRemoteMemberships: await remoteMemberships(kernel, federation, users),
        });
        runJobsOfAccounts(kernel, users, rooms);
        const encryption = await startEncryption(kernel, users, rooms, federation, shutdown);
        const conversations = await startConversations(kernel, users, rooms, encryption, shutdown);
        const directories = await startDirectories(kernel, users, rooms, lookups, shutdown);
        const messages = await startMessages({
          kernel,
          users,
          rooms,
          relationIndex,
          conversations,
          shutdown,
        });
        const notices = await startServerNotices(kernel, users, rooms);
        const thirdParties = openThirdPartyInvites(kernel, users, rooms, federation);
        const handshakes = await handshakeRoutes(kernel, rooms, thirdParties);
        const traffic = await startFederationTraffic(
          { kernel, federation, rooms, conversations, eduHandlers: [encryption.eduHandlers] },
          shutdown,
        );
        openRoomPurge(kernel, rooms);
        await startJobs(kernel, shutdown);
        rooms.incoming.start();
        await rooms.completion.start();
        const pages = openPages(kernel.configuration.mail.templates.custom_template_directory);
        const routes = [
          ...ownRoutes(kernel, pages),
          ...federation.routes,
          ...userRoutes(kernel, users, { shareRoom: (one, other) => rooms.engine.shareRoom(one, other) }),
          ...conversationRoutes(
            kernel,
            users,
            rooms,
            conversations,
            messages.delayedEvents,
            thirdParties.inviting,
          ),
          ...thirdParties.routes,
          ...media.routes,
          ...encryptionRoutes(encryption),
          ...directories.routes,
          ...messages.routes,
          ...notices.routes,
          ...handshakes,
          ...traffic,
          ...federationReadRoutes(kernel, { users, rooms, ...directories, ...messages }),
        ];
        const { accounts } = users;
        const http = createHttp(kernel, accounts, federation, routes, pages);
        shutdown.add('http', () => http.stop());
        const addresses = await http.start();
        await startManhole(kernel, accounts, shutdown);
        running = { kernel, http, pages };
        return { addresses };
      } catch (error) {
        await shutdown.run();
        throw error;
      }
    },

    async stop() {
      running = undefined;
      await shutdown.run();
    },

    async reload(configuration) {
      running?.kernel.caches.configure(configuration.caches);
      running?.pages.reload();
      await running?.http.reload();
    },
  };
}

/** Starts jobs; to be called after all slices have registered theirs. */
async function startJobs({ jobs }: Kernel, shutdown: Shutdown): Promise<void> {
  shutdown.add('jobs', () => jobs.stop());
  await jobs.start();
}

/** Starts the debugging console, whose code is loaded only if it is enabled. */
async function startManhole(kernel: Kernel, accounts: AccountsSlice, shutdown: Shutdown): Promise<void> {
  const { process, http } = kernel.configuration;
  if (process.manhole === null && !http.listeners.some(({ type }) => type === 'manhole')) return;
  const { openManhole } = await import('./composition/manhole.ts');
  const manhole = await openManhole(kernel.configuration, { kernel, accounts }, kernel.log);
  shutdown.add('manhole', () => manhole?.close());
}

function ownRoutes({ configuration, metrics, serverName }: Kernel, pages: Pages): Route[] {
  const { web_client_location } = configuration.server;
  return [
    healthRoute,
    welcomeRoute(
      {
        serverName,
        webClientLocation: web_client_location ?? undefined,
        openRegistration: configuration.accounts.enable_registration,
      },
      pages,
    ),
    ...staticRoutes,
    ...(metrics ? [metricsRoute(metrics)] : []),
  ];
}

function createHttp(
  kernel: Kernel,
  accounts: AccountsSlice,
  federation: Federation,
  routes: readonly Route[],
  pages: Pages,
): HttpServer {
  const { configuration, namedLog, clock, metrics } = kernel;
  return createHttpServer({
    listeners: listenersOf(configuration.http),
    routes,
    authenticator: acceptTokens([accounts.authenticator]),
    serverAuthenticator: federation.serverAuthenticator,
    serverAdmission: new ServerLimiter(configuration.rateLimits.rc_federation, clock),
    errorPage: pages.errorPage,
    log: namedLog('http'),
    clock,
    metrics,
  });
}
