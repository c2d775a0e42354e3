import { type AccountsSlice, hasAccounts } from './accounts/index.ts';
import { openControl } from './composition/control.ts';
import { startErrorReports } from './composition/error-reports.ts';
import { databaseOptionsOf, type Environment, type Kernel, openKernel } from './composition/kernel.ts';
import { OpenedSlices } from './composition/opened-slices.ts';
import { startFailureOf } from './composition/outages.ts';
import type { ServerViews } from './composition/server-views.ts';
import { Shutdown } from './composition/shutdown.ts';
import { startAdministration } from './composition/startup/administration.ts';
import { startFoundation } from './composition/startup/foundation.ts';
import { startMessaging } from './composition/startup/messaging.ts';
import { openHttp, startLastSlices } from './composition/startup/serving.ts';
import { startUsersAndRooms } from './composition/startup/users-and-rooms.ts';
import type { HearthConfiguration } from './configuration.ts';
import type { OptionPlaces } from './kernel/config/index.ts';
import { type HttpServer, Readiness, type Route } from './kernel/http/index.ts';

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
        const foundation = await startFoundation(kernel, opened);
        const usersAndRooms = await startUsersAndRooms(kernel, foundation, opened);
        const lower = { ...foundation, ...usersAndRooms };
        const parts = { ...lower, ...(await startMessaging(kernel, lower, opened)) };
        const administration = startAdministration(kernel, parts, origins, opened);
        const endServiceBackoff = await startLastSlices(kernel, parts, readiness, opened);
        const serving = await openHttp(kernel, { ...parts, ...administration }, endServiceBackoff, opened);
        const { http } = serving;
        routes = serving.routes;
        const addresses = await http.start();
        await startManhole(kernel, parts.users.accounts, opened);
        const control = await openControl(kernel);
        opened.add('control socket', { stop: () => control?.close() });
        const reloadedParts = [parts.pages, parts.mailTemplates, parts.appservices];
        running = { kernel, http, views: administration.views, reloadedParts };
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
