import { median, percentile, sum } from './load/statistics.ts';
import type { Load, Measurement, Result, Results, Scenario } from './scenario.ts';
import type { Target, TargetKind } from './target.ts';

/** Number and duration of the rounds of each load. */
export interface Pace {
  readonly rounds: number;
  /** Duration of each round. */
  readonly seconds: number;
}

/** A measurement together with the resources that the server and the load generator used. */
interface Round extends Measurement {
  readonly cpuSeconds: number | undefined;
  readonly residentBytes: number | undefined;
  /** Share of the time (0 to 1) in which the load generator was busy. */
  readonly generatorBusy: number;
}

/** A target with the scenario prepared on it. */
interface PreparedTarget<Setup> {
  readonly target: Target;
  readonly setup: Setup;
}

/** A load and its results on all targets. */
export interface Finding {
  readonly load: Load<unknown>;
  readonly results: Results;
}

/** A target that has taken this many times as long as planned skips the remaining rounds of a load. */
const maxTimeFactor = 2;
/**
 * Number of the round before the first one. This round takes as long as the counted rounds; it is not counted, because
 * a server compiles its code during its first thousands of requests.
 */
const warmUp = -1;

/**
 * Prepares the scenario on all targets, and runs its loads in rounds that alternate between the targets, so
 * that other work on the machine affects all of them.
 */
export async function runScenario<Setup>(
  scenario: Scenario<Setup>,
  targets: readonly Target[],
  pace: Pace,
): Promise<Finding[]> {
  const preparedTargets: PreparedTarget<Setup>[] = [];
  try {
    for (const target of targets) preparedTargets.push({ target, setup: await scenario.prepare(target) });
    const findings: Finding[] = [];
    for (const load of scenario.loads) {
      findings.push({ load: load as Load<unknown>, results: await runLoad(load, preparedTargets, pace) });
    }
    return findings;
  } finally {
    for (const { setup } of preparedTargets) scenario.dispose(setup);
  }
}

async function runLoad<Setup>(
  load: Load<Setup>,
  preparedTargets: readonly PreparedTarget<Setup>[],
  { rounds, seconds }: Pace,
): Promise<Results> {
  const roundsOf = new Map<TargetKind, Round[]>();
  const secondsOf = new Map<TargetKind, number>();
  const first = load.runsOnce ? 0 : warmUp;
  for (let number = first; number < (load.runsOnce ? 1 : rounds); number++) {
    for (const prepared of preparedTargets) {
      const { kind } = prepared.target;
      const before = secondsOf.get(kind) ?? 0;
      if (before > maxTimeFactor * (rounds + 1) * seconds && roundsOf.has(kind)) continue;
      const round = await runRound(load, prepared, seconds);
      secondsOf.set(kind, before + round.seconds);
      if (number !== warmUp) roundsOf.set(kind, [...(roundsOf.get(kind) ?? []), round]);
    }
  }
  return Object.fromEntries([...roundsOf].map(([kind, ofKind]) => [kind, summarize(ofKind)]));
}

async function runRound<Setup>(
  load: Load<Setup>,
  { target, setup }: PreparedTarget<Setup>,
  seconds: number,
): Promise<Round> {
  const usageBefore = target.usage();
  const loopBefore = performance.eventLoopUtilization();
  const measurement = await load.run(setup, seconds);
  const generatorBusy = performance.eventLoopUtilization(loopBefore).utilization;
  const usage = target.usage();
  const cpuSeconds = usage && usageBefore && usage.cpuSeconds - usageBefore.cpuSeconds;
  return {
    ...measurement,
    // A server that was restarted during the round counts from zero.
    cpuSeconds: cpuSeconds === undefined || cpuSeconds < 0 ? undefined : cpuSeconds,
    residentBytes: usage?.residentBytes,
    generatorBusy,
  };
}

function summarize(rounds: readonly Round[]): Result {
  const latencies = rounds.flatMap((round) => round.latencies);
  const operations = sum(rounds.map((round) => round.operations));
  const cpuSeconds = rounds.map((round) => round.cpuSeconds ?? Number.NaN);
  const throughputOfRounds = rounds.map((round) => round.operations / round.seconds);
  const names = Object.keys(rounds[0]?.figures ?? {});
  const figure = (name: string) => median(rounds.map(({ figures }) => figures?.[name] ?? Number.NaN));
  return {
    rounds: rounds.length,
    operations,
    throughput: median(throughputOfRounds),
    throughputOfRounds,
    p50: percentile(latencies, 0.5),
    p95: percentile(latencies, 0.95),
    p99: percentile(latencies, 0.99),
    cpuPerThousand: cpuSeconds.some(Number.isNaN) ? undefined : (1000 * sum(cpuSeconds)) / operations,
    residentBytes: rounds.at(-1)?.residentBytes,
    generatorBusy: Math.max(...rounds.map((round) => round.generatorBusy)),
    figures: Object.fromEntries(names.map((name) => [name, figure(name)])),
  };
}
