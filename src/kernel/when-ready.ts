/**
 * Passes a value to `next`: at once, or when its promise is fulfilled. For procedures that usually find everything in
 * memory. They need no second version that is synchronous, and no promise and no turn of the event loop when nothing
 * has to be awaited.
 */
export function whenReady<T, R>(value: T | Promise<T>, next: (value: T) => R | Promise<R>): R | Promise<R> {
  return value instanceof Promise ? value.then(next) : next(value);
}

/** Like `Promise.all`, but returns the values at once when none of them is a promise. */
export function allReady<T extends readonly unknown[]>(
  values: {
    readonly [K in keyof T]: T[K] | Promise<T[K]>;
  },
): T | Promise<T> {
  for (const value of values) {
    if (value instanceof Promise) return Promise.all(values) as unknown as Promise<T>;
  }
  return values as T;
}
