/**
 * Two habits of matrix-js-sdk that do not suit a test: it guards each long poll with a timer of 85 seconds and tries
 * again for half a minute what a stopped client was doing, and takes none of these timers back, which would keep the
 * test's process alive; and it tells all that it does on the console.
 */
const longTimer = 1_000;
const { setTimeout } = globalThis;

function setTimeoutWithoutWaiting<Args extends unknown[]>(
  callback: (...args: Args) => void,
  delay?: number,
  ...args: Args
): NodeJS.Timeout {
  const timer = setTimeout(callback, delay, ...args);
  return delay !== undefined && delay > longTimer ? timer.unref() : timer;
}

globalThis.setTimeout = Object.assign(setTimeoutWithoutWaiting, {
  __promisify__: setTimeout.__promisify__,
}) as typeof setTimeout;
for (const method of ['log', 'info', 'debug', 'warn'] as const) console[method] = () => {};
