import { median, percentile, sum } from './load/statistics.ts';
import type { Load, Measurement, Result, Results, Scenario } from './scenario.ts';
import type { Target, TargetKind } from './target.ts';

export interface Pace {
  readonly rounds: number;
  /** Of each round. */
  readonly seconds: number;
}

/** A measurement together with what it cost the server and the load. */
interface Round extends Measurement {
  readonly cpuSeconds: number | undefined;
  readonly residentBytes: number | undefined;
  readonly generatorBusy: number;
}

/** One target with the scenario prepared on it. */
interface Stand<Stage> {
  readonly target: Target;
  readonly stage: Stage;
}

export interface Finding {
  readonly load: Load<unknown>;
  readonly results: Results;
}

/** A target that has spent as many times its share as this sits out the rounds that remain. */
const patience = 2;
/**
 * The round before the first, which does not count, as long as the others: servers run for weeks, and in its first
 * thousands of requests a server compiles its code besides.
 */
const warmUp = -1;

/**
 * Prepares the scenario on all targets and then runs its loads in rounds, the targets taking turns, so that what
 * else the machine does falls on all of them.
 */
export async function runScenario<Stage>(
  scenario: Scenario<Stage>,
  targets: readonly Target[],
  pace: Pace,
): Promise<Finding[]> {
  const stands: Stand<Stage>[] = [];
  try {
    for (const target of targets) stands.push({ target, stage: await scenario.prepare(target) });
    const findings: Finding[] = [];
    for (const load of scenario.loads) {
      findings.push({ load: load as Load<unknown>, results: await runLoad(load, stands, pace) });
    }
    return findings;
  } finally {
    for (const { stage } of stands) scenario.dispose(stage);
  }
}

async function runLoad<Stage>(
  load: Load<Stage>,
  stands: readonly Stand<Stage>[],
  { rounds, seconds }: Pace,
): Promise<Results> {
  const found = new Map<TargetKind, Round[]>();
  const spent = new Map<TargetKind, number>();
  const first = load.runsOnce ? 0 : warmUp;
  for (let number = first; number < (load.runsOnce ? 1 : rounds); number++) {
    for (const stand of stands) {
      const { kind } = stand.target;
      const before = spent.get(kind) ?? 0;
      if (before > patience * (rounds + 1) * seconds && found.has(kind)) continue;
      const round = await runRound(load, stand, seconds);
      spent.set(kind, before + round.seconds);
      if (number !== warmUp) found.set(kind, [...(found.get(kind) ?? []), round]);
    }
  }
  return Object.fromEntries([...found].map(([kind, ofKind]) => [kind, summarize(ofKind)]));
}

async function runRound<Stage>(
  load: Load<Stage>,
  { target, stage }: Stand<Stage>,
  seconds: number,
): Promise<Round> {
  const usageBefore = target.usage();
  const loopBefore = performance.eventLoopUtilization();
  const measurement = await load.run(stage, seconds);
  const generatorBusy = performance.eventLoopUtilization(loopBefore).utilization;
  const usage = target.usage();
  const cpuSeconds = usage && usageBefore && usage.cpuSeconds - usageBefore.cpuSeconds;
  return {
    ...measurement,
    // A server that was restarted in the round counts from zero.
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
