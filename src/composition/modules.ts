import { AccountReader } from '../accounts/index.ts';
import type { OutboundHttp } from '../kernel/outbound/index.ts';
import type { ModulesSlice } from '../modules/index.ts';
import type { Rooms } from '../rooms/index.ts';
import { mappingModules } from '../sso/index.ts';
import type { Kernel } from './kernel.ts';
import type { OpenedSlices } from './opened-slices.ts';
import type { OpenedThirdPartyIds } from './third-party-ids.ts';
import type { Users } from './users.ts';

/**
 * Loads the modules of the configuration. Must be called before the slices that call modules are opened.
 * @returns `undefined` when no module is configured: the code for modules is not loaded in that case
 */
export async function startModules(
  kernel: Kernel,
  http: OutboundHttp,
  opened: OpenedSlices,
): Promise<ModulesSlice | undefined> {
  const { configuration, database, uncaughtErrors, stallWatch } = kernel;
  const { modules } = configuration.modules;
  const { listeners } = configuration.http;
  const hasResources = listeners.some((listener) => Object.keys(listener.additional_resources).length > 0);
  const mappings = mappingModules(configuration.sso);
  if (modules.length === 0 && !hasResources && mappings.size === 0) return undefined;
  const { openModules } = await import('../modules/index.ts');
  const deps = { ...kernel, http, accounts: new AccountReader(database), log: kernel.namedLog('modules') };
  return opened.add(
    'modules',
    await openModules({ ...deps, uncaughtErrors, stallWatch }, { modules, listeners, mappings }),
  );
}

/** Supplies the services that modules use through their API. */
export function supplyModules(
  modules: ModulesSlice | undefined,
  users: Users,
  rooms: Rooms,
  { routesDeps: { mails } }: OpenedThirdPartyIds,
): void {
  const { accounts, registration } = users.accounts;
  const { profiles, accountData } = users;
  modules?.supply({ accounts, registration, profiles, accountData, rooms, mails });
}
