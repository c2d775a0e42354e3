import type { Measurement } from '../scenario.ts';

/**
 * Runs `clients` clients for some seconds. Each client starts its next operation when its previous one has ended.
 * @param work one operation of the client with this number
 */
export async function closedLoop(
  clients: number,
  seconds: number,
  work: (client: number) => Promise<void>,
): Promise<Measurement> {
  const latencies: number[] = [];
  const startedAt = performance.now();
  const deadline = startedAt + seconds * 1000;
  const client = async (_: unknown, index: number) => {
    for (let before = performance.now(); before < deadline; ) {
      await work(index);
      const after = performance.now();
      latencies.push(after - before);
      before = after;
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  return { operations: latencies.length, seconds: (performance.now() - startedAt) / 1000, latencies };
}
