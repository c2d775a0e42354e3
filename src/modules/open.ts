import type { AccountReader } from '../accounts/index.ts';
import { type ListenerConfig, type Route, toDocumentsSpelling } from '../kernel/http/index.ts';
import type { RoomReader } from '../room-engine/index.ts';
import type { DirectoryRules } from '../rooms/index.ts';
import { ModuleCalls, type ModuleCallsDeps } from './calls/module-calls.ts';
import { moduleAccountChecks } from './checks/account-checks.ts';
import { checkedDirectoryRules } from './checks/directory-checks.ts';
import { moduleEventChecks } from './checks/event-checks.ts';
import { type ConfiguredModule, loadModule, loadResource } from './loading/load-modules.ts';
import { moduleLoginTypes, passwordAuthority } from './logins/password-providers.ts';
import { type ModuleApiDeps, moduleApi } from './module-api.ts';
import { RegisteredCallbacks } from './registered-callbacks.ts';
import { followNewEvents } from './rooms/new-events.ts';
import type { ServerServices } from './server-services.ts';
import { webRoutes } from './web/web-routes.ts';

export interface ModulesDeps extends ModuleCallsDeps, Pick<ModuleApiDeps, 'serverName' | 'http'> {
  readonly accounts: AccountReader;
}

export interface ModulesOptions {
  readonly modules: readonly ConfiguredModule[];
  readonly listeners: readonly ListenerConfig[];
}

/** The loaded modules, with what they add to the server. */
export type ModulesSlice = Awaited<ReturnType<typeof openModules>>;

/**
 * Loads the modules of the configuration, one after the other, before the slices that ask them.
 * @throws StartFailure when one cannot be loaded
 */
export async function openModules(deps: ModulesDeps, options: ModulesOptions) {
  const callbacks = new RegisteredCallbacks();
  const calls = new ModuleCalls(deps);
  let services: ServerServices | undefined;
  const apiDeps: ModuleApiDeps = {
    ...deps,
    callbacks,
    services: () => {
      if (services === undefined) throw new Error('The server has not started yet');
      return services;
    },
  };
  for (const configured of options.modules) {
    await loadModule(configured, moduleApi(configured.module, apiDeps), deps.clock);
  }
  const additionalRoutes = new Map<ListenerConfig, readonly Route[]>();
  for (const listener of options.listeners) {
    const routes: Route[] = [];
    for (const [path, configured] of Object.entries(listener.additional_resources)) {
      const { module } = configured;
      const handler = await loadResource(configured, moduleApi(module, apiDeps), deps.clock);
      routes.push(...webRoutes({ module, path: toDocumentsSpelling(path), handler }, calls));
    }
    additionalRoutes.set(listener, routes);
  }
  const providers = { ...deps, callbacks, calls };
  return {
    routes: callbacks.webResources.flatMap(({ module, callbacks: resource }) =>
      webRoutes({ module, ...resource }, calls),
    ),
    eventChecks: (engine: RoomReader) => moduleEventChecks(callbacks, calls, engine),
    /** Routes of single listeners (`additional_resources`). */
    additionalRoutes,
    accounts: {
      passwordAuthority: passwordAuthority(providers),
      loginTypes: moduleLoginTypes(providers),
      checks: moduleAccountChecks(callbacks, calls),
    },
    directoryRules: (rules: DirectoryRules) => checkedDirectoryRules(rules, callbacks, calls),
    /** Supplies the services that modules use, which are opened after the modules. */
    supply(opened: ServerServices): void {
      services = opened;
      followNewEvents(callbacks, calls, opened.rooms.engine);
    },
    async stop(): Promise<void> {
      for (const { module, callbacks: stop } of callbacks.stops) {
        await calls.run(module, 'onStop', stop).catch(() => {});
      }
    },
  };
}
