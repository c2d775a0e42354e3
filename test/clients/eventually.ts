import { setTimeout as sleep } from 'node:timers/promises';

/** Milliseconds between two looks: at first, and at most. Looking costs the server time, too. */
const [shortest, longest] = [10, 100];

/**
 * Looks again and again until `look` finds something.
 * @param what as in "waited in vain for bob's message"
 * @param look something else than `undefined` and `false` ends the waiting
 * @throws Error when that takes longer than `patience` milliseconds.
 */
export async function eventually<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
  patience = 120_000,
): Promise<T> {
  const until = performance.now() + patience;
  for (let pause = shortest; ; pause = Math.min(pause * 1.5, longest)) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    if (performance.now() > until) throw new Error(`waited in vain for ${what}`);
    await sleep(pause);
  }
}
