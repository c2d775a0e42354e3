import type { EventRules, PasswordProvider, SpamChecker, WebHandler } from './api/index.ts';

/** A set of callbacks with the name of its module. */
export interface Registered<T> {
  /** As the configuration names it. */
  readonly module: string;
  readonly callbacks: T;
}

/** The callbacks of all modules, in the order in which they were registered. */
export class RegisteredCallbacks {
  readonly spamCheckers: Registered<SpamChecker>[] = [];
  readonly eventRules: Registered<EventRules>[] = [];
  readonly passwordProviders: Registered<PasswordProvider>[] = [];
  readonly webResources: Registered<{ readonly path: string; readonly handler: WebHandler }>[] = [];
  readonly stops: Registered<() => void | Promise<void>>[] = [];

  /** Returns the modules that have a callback of the spam checker with this name. */
  checkersWith<N extends keyof SpamChecker>(name: N): Registered<NonNullable<SpamChecker[N]>>[] {
    return withCallback(this.spamCheckers, name);
  }

  /** Returns the modules that have a callback of the event rules with this name. */
  rulesWith<N extends keyof EventRules>(name: N): Registered<NonNullable<EventRules[N]>>[] {
    return withCallback(this.eventRules, name);
  }
}

/** Returns the callbacks with a name, each bound to the object that it was registered with. */
function withCallback<T extends object, N extends keyof T>(
  sets: readonly Registered<T>[],
  name: N,
): Registered<NonNullable<T[N]>>[] {
  return sets.flatMap(({ module, callbacks }) => {
    const callback = callbacks[name];
    return typeof callback === 'function' ? [{ module, callbacks: callback.bind(callbacks) }] : [];
  });
}
