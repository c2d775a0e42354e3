import { median } from './load/statistics.ts';
import type { Goal, Result } from './scenario.ts';

/** Divides the throughput of `one` by the throughput of `other`. Returns the median over the rounds that both ran. */
function ratio(one: Result, other: Result): number {
  const rounds = Math.min(one.rounds, other.rounds);
  return median(
    Array.from(
      { length: rounds },
      (_, round) => one.throughputOfRounds[round]! / other.throughputOfRounds[round]!,
    ),
  );
}

/** A goal for the throughput of Hearth, in percent of the target `ceiling`. Without `atLeast` it is only reported. */
export function percentOfCeiling(atLeast?: number): Goal {
  return {
    unit: '% of the ceiling',
    ...(atLeast !== undefined && { atLeast }),
    figure: ({ hearth, ceiling }) => (hearth && ceiling ? 100 * ratio(hearth, ceiling) : undefined),
  };
}

/** A goal for the throughput of Hearth, as a multiple of the target `peer`. Without `atLeast` it is only reported. */
export function multipleOfPeer(atLeast?: number): Goal {
  return {
    unit: 'times the peer',
    ...(atLeast !== undefined && { atLeast }),
    figure: ({ hearth, peer }) => (hearth && peer ? ratio(hearth, peer) : undefined),
  };
}

/** A goal for a figure of Hearth's own result. */
export function hearthGoal(
  unit: string,
  limit: Pick<Goal, 'atLeast' | 'atMost'>,
  figure: (result: Result) => number | undefined,
): Goal {
  return { unit, ...limit, figure: ({ hearth }) => hearth && figure(hearth) };
}

/** Whether a figure reaches a goal; `undefined` when there is no figure or the goal has no limit. */
export function isReached({ atLeast, atMost }: Goal, figure: number | undefined): boolean | undefined {
  if (figure === undefined || Number.isNaN(figure)) return undefined;
  if (atLeast === undefined && atMost === undefined) return undefined;
  return figure >= (atLeast ?? Number.NEGATIVE_INFINITY) && figure <= (atMost ?? Number.POSITIVE_INFINITY);
}
