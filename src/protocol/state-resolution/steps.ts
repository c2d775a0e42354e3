/** How many events a long computation looks at before it stops, so that its caller may let others have their turns. */
export const eventsPerStep = 50;

/** Does something with each item, with stops. */
export function* eachInSteps<T>(items: Iterable<T>, work: (item: T) => void): Generator<void> {
  let left = eventsPerStep;
  for (const item of items) {
    work(item);
    if (--left > 0) continue;
    left = eventsPerStep;
    yield;
  }
}
