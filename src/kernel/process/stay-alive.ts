/** Milliseconds between two runs of the timer, which does nothing but keep the process alive. */
const interval = 60_000;

/** Keeps the process alive until `work` has ended. The timers and connections of `work` do not keep it alive. */
export async function stayAlive<T>(work: Promise<T>): Promise<T> {
  const timer = setInterval(() => undefined, interval);
  try {
    return await work;
  } finally {
    clearInterval(timer);
  }
}
