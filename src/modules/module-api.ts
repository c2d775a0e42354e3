import { toDocumentsSpelling } from '../kernel/http/index.ts';
import type { Logger } from '../kernel/observability/index.ts';
import type { OutboundHttp } from '../kernel/outbound/index.ts';
import type { ModuleApi, ModuleLog } from './api/index.ts';
import type { RegisteredCallbacks } from './registered-callbacks.ts';
import { outboundAccess, roomAccess, type Services, userAccess } from './server-services.ts';

export interface ModuleApiDeps {
  readonly serverName: string;
  readonly log: Logger;
  readonly http: Pick<OutboundHttp, 'fetch'>;
  readonly callbacks: RegisteredCallbacks;
  readonly services: Services;
}

/** The paths below which modules may serve resources on every listener of clients. */
const resourcePath = /^\/_server\/client(\/[^/:*?#]+)+$/;

/** Returns the API for one module. @param module its name in the configuration */
export function moduleApi(module: string, deps: ModuleApiDeps): ModuleApi {
  const { callbacks, http, serverName, services } = deps;
  return {
    serverName,
    log: moduleLog(deps.log.child({ module })),
    users: userAccess(services),
    rooms: roomAccess(services),
    http: outboundAccess(http),
    registerSpamChecker: (checker) => void callbacks.spamCheckers.push({ module, callbacks: checker }),
    registerEventRules: (rules) => void callbacks.eventRules.push({ module, callbacks: rules }),
    registerPasswordProvider: (provider) =>
      void callbacks.passwordProviders.push({ module, callbacks: provider }),
    registerWebResource(path, handler) {
      const spelled = toDocumentsSpelling(path);
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
