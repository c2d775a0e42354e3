import type {
  AccountObserver,
  AccountRules,
  BackgroundUpdateRules,
  EventAdditions,
  EventRules,
  MediaRules,
  PresenceRouter,
  RateLimitRules,
  SpamChecker,
} from 'hearth/module';

/** Callbacks of all families. `mayInviteAddress` has the signature of `EventRules`. */
export type Callbacks = Omit<SpamChecker, 'mayInviteAddress'> &
  EventRules &
  AccountRules &
  AccountObserver &
  MediaRules &
  RateLimitRules &
  PresenceRouter &
  EventAdditions &
  BackgroundUpdateRules;

/** The callbacks of the running test. */
export const callbacks: { running: Callbacks } = { running: {} };

/** Returns callbacks that call the callbacks of the running test, and return `fallback` where the test has none. */
export const delegating = (names: readonly (keyof Callbacks)[], fallback?: string): object =>
  delegatingTo(() => callbacks.running, names, fallback);

/**
 * Returns callbacks that call the methods of the same names of `target()`, and return `fallback` where it has no such
 * method.
 */
export function delegatingTo<T extends object>(
  target: () => T,
  names: readonly (keyof T)[],
  fallback?: string,
): T {
  const call =
    (name: keyof T) =>
    (...values: unknown[]) => {
      const callback = target()[name] as ((...values: unknown[]) => unknown) | undefined;
      return callback ? callback(...values) : fallback;
    };
  return Object.fromEntries(names.map((name) => [name, call(name)])) as T;
}

/** The answer of a check that denies. */
export const denial = { errcode: 'ORG_TEST_NO', error: 'Not here', status: 418 };

/** Returns the status and the error code of a response. */
export const codeOf = ({ status, body }: { status: number; body: Record<string, unknown> }) => [
  status,
  body['errcode'],
];
