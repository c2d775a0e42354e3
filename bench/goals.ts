import { median } from './load/statistics.ts';
import type { Goal, Result } from './scenario.ts';

/** Throughput as a multiple of another target's: the median over the rounds that both ran. */
function ratio(one: Result, other: Result): number {
  const rounds = Math.min(one.rounds, other.rounds);
  return median(
    Array.from(
      { length: rounds },
      (_, round) => one.throughputOfRounds[round]! / other.throughputOfRounds[round]!,
    ),
  );
}

/** Hearth's throughput in percent of the ceiling's. Without a limit it is only reported. */
export function percentOfCeiling(atLeast?: number): Goal {
  return {
    unit: '% of the ceiling',
    ...(atLeast !== undefined && { atLeast }),
    figure: ({ hearth, ceiling }) => (hearth && ceiling ? 100 * ratio(hearth, ceiling) : undefined),
  };
}

/** Hearth's throughput as a multiple of the peer's. Without a limit it is only reported. */
export function timesThePeer(atLeast?: number): Goal {
  return {
    unit: 'times the peer',
    ...(atLeast !== undefined && { atLeast }),
    figure: ({ hearth, peer }) => (hearth && peer ? ratio(hearth, peer) : undefined),
  };
}

/** A goal for a figure of Hearth's own result. */
export function ofHearth(
  unit: string,
  limit: Pick<Goal, 'atLeast' | 'atMost'>,
  figure: (result: Result) => number | undefined,
): Goal {
  return { unit, ...limit, figure: ({ hearth }) => hearth && figure(hearth) };
}

/** Whether the goal is reached; `undefined` when it has no figure or no limit. */
export function isReached({ atLeast, atMost }: Goal, figure: number | undefined): boolean | undefined {
  if (figure === undefined || Number.isNaN(figure)) return undefined;
  if (atLeast === undefined && atMost === undefined) return undefined;
  return figure >= (atLeast ?? Number.NEGATIVE_INFINITY) && figure <= (atMost ?? Number.POSITIVE_INFINITY);
}
