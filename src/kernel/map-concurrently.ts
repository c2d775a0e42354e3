/**
 * Calls `work` for each item, for at most `max` items at the same time. After a failure it calls `work` for no further
 * items.
 * @returns the results in the order of the items
 * @throws what `work` throws first
 */
export async function mapConcurrently<T, R>(
  items: Iterable<T>,
  max: number,
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  const pending = [...items].entries();
  let hasFailed = false;
  const workInOrder = async () => {
    for (const [index, item] of pending) {
      try {
        results[index] = await work(item);
      } catch (error) {
        hasFailed = true;
        throw error;
      }
      if (hasFailed) return;
    }
  };
  await Promise.all(Array.from({ length: max }, workInOrder));
  return results;
}
