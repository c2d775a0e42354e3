import type { SrvRecord } from '../../kernel/outbound/index.ts';
import { type Randomness, randomFraction } from '../../kernel/randomness.ts';

/** Returns the records in the order in which to try their targets. Source: RFC 2782, "Priority" and "Weight". */
export function orderBySrv(records: readonly SrvRecord[], randomness: Randomness): SrvRecord[] {
  const byPriority = Map.groupBy(records, ({ priority }) => priority);
  return [...byPriority.keys()]
    .sort((a, b) => a - b)
    .flatMap((priority) => drawByWeight(byPriority.get(priority)!, randomness));
}

/**
 * Draws the records of one priority in a random order. The chance of a record to be next is proportional to its weight,
 * and very small for weight 0.
 */
function drawByWeight(records: readonly SrvRecord[], randomness: Randomness): SrvRecord[] {
  const remaining = records.toSorted((a, b) => a.weight - b.weight);
  const drawn: SrvRecord[] = [];
  while (remaining.length > 1) {
    const total = remaining.reduce((sum, { weight }) => sum + weight, 0);
    let mark = randomFraction(randomness) * (total + 1) - 1;
    const index = remaining.findIndex(({ weight }) => {
      mark -= weight;
      return mark <= 0;
    });
    drawn.push(...remaining.splice(Math.max(0, index), 1));
  }
  return [...drawn, ...remaining];
}
