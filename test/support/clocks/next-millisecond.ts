/**
 * Waits until the clock of the machine shows another millisecond, so that what a test does next has a later timestamp
 * than what it did before.
 */
export async function nextMillisecond(): Promise<void> {
  const before = Date.now();
  while (Date.now() <= before) await new Promise(setImmediate);
}
