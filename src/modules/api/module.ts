import type { JsonObject } from '../../protocol/index.ts';
import type { AccountObserver, AccountRules } from './account-rules.ts';
import type { EventAdditions } from './event-additions.ts';
import type { EventRules } from './event-rules.ts';
import type { BackgroundUpdateRules, MediaRules, RateLimitRules } from './limit-rules.ts';
import type { PasswordProvider } from './password-provider.ts';
import type { PresenceRouter } from './presence-router.ts';
import type { RoomAccess } from './rooms.ts';
import type { OutboundAccess, UserAccess } from './server-access.ts';
import type { SpamChecker } from './spam-checker.ts';
import type { StoreAccess } from './storage.ts';
import type { WebHandler } from './web-resource.ts';
import type { JobAccess, MailAccess } from './work.ts';

/** Writes lines into the log of the server, under the name of the module. */
export interface ModuleLog {
  debug(message: string, fields?: object): void;
  info(message: string, fields?: object): void;
  warn(message: string, fields?: object): void;
  error(message: string, fields?: object): void;
}

/**
 * The argument of a module. The methods that begin with `register` may be called only while the module is being loaded;
 * the others work after the server has started, except where they say otherwise. A callback times out after 10 seconds.
 */
export interface ModuleApi {
  readonly serverName: string;
  readonly log: ModuleLog;
  readonly users: UserAccess;
  readonly rooms: RoomAccess;
  readonly http: OutboundAccess;
  readonly stores: StoreAccess;
  readonly jobs: JobAccess;
  readonly mail: MailAccess;
  /** Registers checks of the actions of local users. All modules must allow an action. */
  registerSpamChecker(checker: SpamChecker): void;
  /** Registers rules for events and rooms. All modules must allow them. */
  registerEventRules(rules: EventRules): void;
  /** Registers a provider of logins. */
  registerPasswordProvider(provider: PasswordProvider): void;
  /** Registers rules for accounts. */
  registerAccountRules(rules: AccountRules): void;
  /** Registers a receiver of changes of accounts. */
  registerAccountObserver(observer: AccountObserver): void;
  /** Registers limits of the media repository for single users. */
  registerMediaRules(rules: MediaRules): void;
  /** Registers rate limits for single users. */
  registerRateLimits(rules: RateLimitRules): void;
  /** Registers additions to the `unsigned` of events. */
  registerEventAdditions(additions: EventAdditions): void;
  /** Registers a router of presence. */
  registerPresenceRouter(router: PresenceRouter): void;
  /** Registers rules for background updates. */
  registerBackgroundUpdateRules(rules: BackgroundUpdateRules): void;
  /**
   * Serves a path and all paths below on the listeners with the resource `client`.
   * @param path below `/_synapse/client/`; `additional_resources` can serve other paths
   */
  registerWebResource(path: string, handler: WebHandler): void;
  /** Registers a function that runs when the server stops. Works while the module is being loaded, and later. */
  onStop(stop: () => void | Promise<void>): void;
}

/**
 * The default export of a module that the option `modules` names. It registers callbacks. When it fails, the server
 * does not start, because a server without its checks would allow actions that the module must forbid.
 * @param config the value of `config`, which the module checks itself
 */
export type Module<Config = JsonObject> = (config: Config, api: ModuleApi) => void | Promise<void>;

/**
 * The default export of a module that `additional_resources` names: returns the handler for its path.
 * @param config the value of `config`
 */
export type WebResource<Config = JsonObject> = (
  config: Config,
  api: ModuleApi,
) => WebHandler | Promise<WebHandler>;
