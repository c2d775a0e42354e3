import type {
  AccountObserver,
  AccountRules,
  BackgroundUpdateRules,
  EventAdditions,
  EventRules,
  MediaRules,
  PasswordProvider,
  PresenceRouter,
  RateLimitRules,
  SpamChecker,
  WebHandler,
} from './api/index.ts';

/** A family of callbacks, or a single callback, with the module that has registered it. */
export interface ModuleCallbacks<T> {
  /** As the configuration names it. */
  readonly module: string;
  readonly callbacks: T;
}

/** The families of callbacks that consist of optional members. */
export interface CallbackFamilies {
  readonly spamChecker: SpamChecker;
  readonly eventRules: EventRules;
  readonly accountRules: AccountRules;
  readonly accountObserver: AccountObserver;
  readonly mediaRules: MediaRules;
  readonly rateLimits: RateLimitRules;
  readonly eventAdditions: EventAdditions;
  readonly presenceRouter: PresenceRouter;
  readonly backgroundUpdates: BackgroundUpdateRules;
}

/** The callbacks of all modules, in the order in which they were registered. */
export class RegisteredCallbacks {
  readonly passwordProviders: ModuleCallbacks<PasswordProvider>[] = [];
  readonly webResources: ModuleCallbacks<{ readonly path: string; readonly handler: WebHandler }>[] = [];
  readonly stops: ModuleCallbacks<() => void | Promise<void>>[] = [];
  readonly #families: { readonly [F in keyof CallbackFamilies]: ModuleCallbacks<CallbackFamilies[F]>[] } = {
    spamChecker: [],
    eventRules: [],
    accountRules: [],
    accountObserver: [],
    mediaRules: [],
    rateLimits: [],
    eventAdditions: [],
    presenceRouter: [],
    backgroundUpdates: [],
  };

  /** Adds the callbacks of a module. */
  add<F extends keyof CallbackFamilies>(family: F, module: string, callbacks: CallbackFamilies[F]): void {
    this.#families[family].push({ module, callbacks });
  }

  /** Returns the callbacks with a name, each bound to the object that it was registered with. */
  with<F extends keyof CallbackFamilies, N extends keyof CallbackFamilies[F]>(
    family: F,
    name: N,
  ): ModuleCallbacks<NonNullable<CallbackFamilies[F][N]>>[] {
    const sets: readonly ModuleCallbacks<CallbackFamilies[F]>[] = this.#families[family];
    return sets.flatMap(({ module, callbacks }) => {
      const callback = callbacks[name];
      return typeof callback === 'function' ? [{ module, callbacks: callback.bind(callbacks) }] : [];
    });
  }
}
