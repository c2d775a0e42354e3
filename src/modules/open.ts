import type { AccountReader } from '../accounts/index.ts';
import {
  type Authenticator,
  type ListenerConfig,
  type Route,
  toDeclaredSpelling,
} from '../kernel/http/index.ts';
import type { UncaughtErrors } from '../kernel/observability/index.ts';
import type { StallWatch } from '../kernel/process/index.ts';
import type { RoomReader } from '../room-engine/index.ts';
import type { DirectoryRules, InviteLimits } from '../rooms/index.ts';
import type { UserMapper } from '../sso/index.ts';
import { AccountChanges } from './accounts/account-changes.ts';
import { moduleAccountChecks, throwDenial, unlessNone } from './accounts/account-checks.ts';
import { moduleAccountNames } from './accounts/account-names.ts';
import { refusingExpired } from './accounts/expired-accounts.ts';
import { firstDenial } from './calls/call-all.ts';
import { ModuleCalls, type ModuleCallsDeps } from './calls/module-calls.ts';
import { ModuleHeap } from './calls/module-heap.ts';
import { addressInviteCheck } from './checks/address-invites.ts';
import { checkedDirectoryRules } from './checks/directory-checks.ts';
import { moduleEventChecks } from './checks/event-checks.ts';
import { moduleFoundUsers } from './checks/found-users.ts';
import { moduleInviteCheck, moduleReceivedEventChecks } from './checks/received-events.ts';
import { ModuleInviteLimits } from './limits/invite-limits.ts';
import { moduleMediaRules } from './limits/media-rules.ts';
import { beforeUpdateBatch, updateBatchSize } from './limits/update-batches.ts';
import { type ConfiguredModule, loadMapping, loadModule, loadResource } from './loading/load-modules.ts';
import { moduleLoginTypes, passwordAuthority } from './logins/password-providers.ts';
import { moduleMapper } from './logins/user-mappings.ts';
import { type ModuleApiDeps, moduleApi } from './module-api.ts';
import { RegisteredCallbacks } from './registered-callbacks.ts';
import { moduleEventAdditions } from './rooms/event-additions.ts';
import { followNewEvents } from './rooms/new-events.ts';
import { modulePresenceRouting } from './rooms/presence-routing.ts';
import type { ServerServices } from './server-services.ts';
import { ModuleStores } from './storage/module-store.ts';
import { webRoutes } from './web/web-routes.ts';
import type { ModuleJobsDeps } from './work/module-jobs.ts';

export interface ModulesDeps
  extends ModuleCallsDeps,
    ModuleJobsDeps,
    Pick<ModuleApiDeps, 'serverName' | 'http'> {
  readonly accounts: AccountReader;
  /** Receives the uncaught errors of the process; absent where another program handles them. */
  readonly uncaughtErrors: UncaughtErrors | undefined;
  /** Finds code that blocks the event loop; absent where another program watches the process. */
  readonly stallWatch: StallWatch | undefined;
}

export interface ModulesOptions {
  readonly modules: readonly ConfiguredModule[];
  readonly listeners: readonly ListenerConfig[];
  /** Modules of `user_mapping_provider`, by the id of the identity provider. */
  readonly mappings: ReadonlyMap<string, ConfiguredModule>;
}

/** The loaded modules, with their additions to the server. */
export type ModulesSlice = Awaited<ReturnType<typeof openModules>>;

/**
 * Loads the modules of the configuration, one after the other. Must be called before the slices that call modules are
 * opened.
 * @throws StartFailure when a module cannot be loaded
 */
export async function openModules(deps: ModulesDeps, options: ModulesOptions) {
  const callbacks = new RegisteredCallbacks();
  const calls = new ModuleCalls(deps);
  const { context } = calls;
  const endClaim = deps.uncaughtErrors?.claim((error) => calls.claimUncaught(error));
  let services: ServerServices | undefined;
  const apiDeps: ModuleApiDeps = {
    ...deps,
    callbacks,
    calls,
    stores: new ModuleStores(deps),
    services: () => {
      if (services === undefined) throw new Error('The server has not started yet');
      return services;
    },
  };
  const loading = { clock: deps.clock, context };
  for (const configured of options.modules) {
    await loadModule(configured, moduleApi(configured.module, apiDeps), loading);
  }
  const additionalRoutes = new Map<ListenerConfig, readonly Route[]>();
  for (const listener of options.listeners) {
    const routes: Route[] = [];
    for (const [path, configured] of Object.entries(listener.additional_resources)) {
      const { module } = configured;
      const handler = await loadResource(configured, moduleApi(module, apiDeps), loading);
      routes.push(...webRoutes({ module, path: toDeclaredSpelling(path), handler }, calls));
    }
    additionalRoutes.set(listener, routes);
  }
  const mappers = new Map<string, UserMapper>();
  for (const [provider, configured] of options.mappings) {
    const { module } = configured;
    const mapper = await loadMapping(configured, moduleApi(module, apiDeps), loading);
    mappers.set(provider, moduleMapper(module, mapper, calls));
  }
  const heap = new ModuleHeap({ ...deps, files: context.files });
  heap.start();
  deps.stallWatch?.start((stall) => calls.claimStall(stall), context.files.all);
  const changes = new AccountChanges(callbacks, calls);
  const addressRules = callbacks.with('accountRules', 'mayUseAddress');
  const deletionRules = callbacks.with('eventRules', 'mayDeleteRoom');
  const inviteLimits = new ModuleInviteLimits(callbacks, calls, deps.clock);
  const providers = { ...deps, callbacks, calls };
  const roomEngine = () => apiDeps.services().rooms.engine;
  return {
    routes: callbacks.webResources.flatMap(({ module, callbacks: resource }) =>
      webRoutes({ module, ...resource }, calls),
    ),
    eventChecks: (engine: RoomReader) => moduleEventChecks(callbacks, calls, engine),
    /** Routes of single listeners (`additional_resources`). */
    additionalRoutes,
    /** The mapping of users to accounts, by the id of the identity provider. */
    mappers,
    accounts: {
      passwordAuthority: passwordAuthority(providers),
      loginTypes: moduleLoginTypes(providers),
      checks: moduleAccountChecks(callbacks, calls),
      names: moduleAccountNames(callbacks, calls),
      loggedIn: changes.loggedIn,
      deviceCleanups: changes.deviceCleanups,
    },
    /** Rules for mail addresses and phone numbers. */
    addresses: {
      checkUse: unlessNone(
        addressRules,
        async (medium: string, address: string, isRegistration: boolean): Promise<void> =>
          throwDenial(
            await firstDenial(calls, 'mayUseAddress', addressRules, (check) =>
              check(medium, address, isRegistration),
            ),
          ),
      ),
      changed: changes.addressChanged,
    },
    /** Refuses users whose accounts have expired. */
    authenticator: (authenticator: Authenticator) => refusingExpired(authenticator, callbacks, calls),
    directoryRules: (rules: DirectoryRules) => checkedDirectoryRules(rules, callbacks, calls, roomEngine),
    /** Rules of the media repository. */
    media: moduleMediaRules(callbacks, calls),
    rooms: {
      receivedEventChecks: moduleReceivedEventChecks(callbacks, calls, roomEngine),
      eventAdditions: moduleEventAdditions(callbacks, calls),
      chooseInviteLimits: (defaultLimits: InviteLimits) => inviteLimits.limitsWithDefaults(defaultLimits),
    },
    checkReceivedInvite: moduleInviteCheck(callbacks, calls),
    checkAddressInvite: (engine: RoomReader) => addressInviteCheck(callbacks, calls, engine),
    presence: modulePresenceRouting(callbacks, calls),
    mayShowUser: moduleFoundUsers(callbacks, calls),
    /** Rules of the admin API. */
    administration: {
      checkRoomDeletion: unlessNone(
        deletionRules,
        async (administrator: string, roomId: string): Promise<void> =>
          throwDenial(
            await firstDenial(calls, 'mayDeleteRoom', deletionRules, (check) => check(administrator, roomId)),
          ),
      ),
      beforeUpdateBatch: beforeUpdateBatch(callbacks, calls),
      updateBatchSize: updateBatchSize(callbacks, calls),
    },
    /** Supplies the services that modules use. The server opens these services after it has loaded the modules. */
    supply(opened: ServerServices): void {
      services = opened;
      followNewEvents(callbacks, calls, opened.rooms.engine);
      changes.follow(opened);
    },
    async stop(): Promise<void> {
      for (const { module, callbacks: stop } of callbacks.stops) {
        await calls.run(module, 'onStop', stop).catch(() => {});
      }
      endClaim?.();
      deps.stallWatch?.stop();
      heap.stop();
    },
  };
}
