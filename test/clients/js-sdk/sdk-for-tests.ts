/**
 * Adapts matrix-js-sdk to tests. The SDK guards each long poll by a timer of 85 seconds, retries for half a minute
 * after its client was stopped, and never cancels these timers. So that they do not keep the process alive, this module
 * unrefs all timers above one second. It also drops what the SDK logs to the console, except errors.
 */
const minLongDelay = 1_000;
const { setTimeout } = globalThis;

function setUnrefTimeout<Args extends unknown[]>(
  callback: (...args: Args) => void,
  delay?: number,
  ...args: Args
): NodeJS.Timeout {
  const timer = setTimeout(callback, delay, ...args);
  return delay !== undefined && delay > minLongDelay ? timer.unref() : timer;
}

globalThis.setTimeout = Object.assign(setUnrefTimeout, {
  __promisify__: setTimeout.__promisify__,
}) as typeof setTimeout;
for (const method of ['log', 'info', 'debug', 'warn'] as const) console[method] = () => {};
