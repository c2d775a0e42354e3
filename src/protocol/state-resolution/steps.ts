/** How many events a long computation handles before it yields, so that its caller can let other work run. */
export const eventsPerStep = 50;

/** Calls `work` for each item, and yields after every `eventsPerStep` items. */
export function* eachInSteps<T>(items: Iterable<T>, work: (item: T) => void): Generator<void> {
  let left = eventsPerStep;
  for (const item of items) {
    work(item);
    if (--left > 0) continue;
    left = eventsPerStep;
    yield;
  }
}
