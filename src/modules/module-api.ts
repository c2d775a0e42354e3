import { toDeclaredSpelling } from '../kernel/http/index.ts';
import type { Logger } from '../kernel/observability/index.ts';
import type { OutboundHttp } from '../kernel/outbound/index.ts';
import type { ModuleApi, ModuleLog } from './api/index.ts';
import type { ModuleCalls } from './calls/module-calls.ts';
import type { RegisteredCallbacks } from './registered-callbacks.ts';
import { outboundAccess, roomAccess, type Services, userAccess } from './server-services.ts';
import type { ModuleStores } from './storage/module-store.ts';
import { storeAccess } from './storage/store-access.ts';
import { jobAccess, type ModuleJobsDeps } from './work/module-jobs.ts';
import { mailAccess } from './work/module-mail.ts';

export interface ModuleApiDeps extends ModuleJobsDeps {
  readonly serverName: string;
  readonly log: Logger;
  readonly http: Pick<OutboundHttp, 'fetch'>;
  readonly callbacks: RegisteredCallbacks;
  readonly services: Services;
  readonly calls: ModuleCalls;
  readonly stores: ModuleStores;
}

/** The paths at which modules may serve resources on every listener of clients. */
const resourcePath = /^\/_server\/client(\/[^/:*?#]+)+$/;

/** Returns the API for one module. @param module its name in the configuration */
export function moduleApi(module: string, deps: ModuleApiDeps): ModuleApi {
  const { callbacks, http, serverName, services } = deps;
  const { context } = deps.calls;
  return {
    serverName,
    log: moduleLog(deps.log.child({ module })),
    users: userAccess(services, context),
    rooms: roomAccess(services, context),
    http: outboundAccess(http, context),
    stores: storeAccess(module, deps.stores, context),
    jobs: jobAccess(module, deps, deps.calls),
    mail: mailAccess(deps.database, () => services().mails, context),
    registerSpamChecker: (checker) => callbacks.add('spamChecker', module, checker),
    registerEventRules: (rules) => callbacks.add('eventRules', module, rules),
    registerAccountRules: (rules) => callbacks.add('accountRules', module, rules),
    registerAccountObserver: (observer) => callbacks.add('accountObserver', module, observer),
    registerMediaRules: (rules) => callbacks.add('mediaRules', module, rules),
    registerRateLimits: (rules) => callbacks.add('rateLimits', module, rules),
    registerEventAdditions: (additions) => callbacks.add('eventAdditions', module, additions),
    registerPresenceRouter: (router) => callbacks.add('presenceRouter', module, router),
    registerBackgroundUpdateRules: (rules) => callbacks.add('backgroundUpdates', module, rules),
    registerPasswordProvider: (provider) =>
      void callbacks.passwordProviders.push({ module, callbacks: provider }),
    registerWebResource(path, handler) {
      const spelled = toDeclaredSpelling(path);
      if (!resourcePath.test(spelled)) {
        throw new Error(`${path} is not a path below /_synapse/client/ without : * ? #`);
      }
      callbacks.webResources.push({ module, callbacks: { path: spelled, handler } });
    },
    onStop: (stop) => void callbacks.stops.push({ module, callbacks: stop }),
  };
}

const moduleLog = (log: Logger): ModuleLog => ({
  debug: (message, fields = {}) => log.debug(fields, message),
  info: (message, fields = {}) => log.info(fields, message),
  warn: (message, fields = {}) => log.warn(fields, message),
  error: (message, fields = {}) => log.error(fields, message),
});
