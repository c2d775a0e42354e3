import type { Measurement } from '../scenario.ts';

/**
 * Lets `clients` clients work for a while, each of them starting anew as soon as it has its answer.
 * @param work one operation of the client with this number
 */
export async function closedLoop(
  clients: number,
  seconds: number,
  work: (client: number) => Promise<void>,
): Promise<Measurement> {
  const latencies: number[] = [];
  const startedAt = performance.now();
  const until = startedAt + seconds * 1000;
  const client = async (_: unknown, index: number) => {
    for (let before = performance.now(); before < until; ) {
      await work(index);
      const after = performance.now();
      latencies.push(after - before);
      before = after;
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  return { operations: latencies.length, seconds: (performance.now() - startedAt) / 1000, latencies };
}
