import type { Target, TargetKind } from './target.ts';

/** Result of one round of a load. */
export interface Measurement {
  readonly operations: number;
  readonly seconds: number;
  /** Milliseconds of each operation. */
  readonly latencies: readonly number[];
  /** Figures that only this load measures. */
  readonly figures?: Readonly<Record<string, number>>;
}

/** Summary of all rounds of a load on one target. */
export interface Result {
  readonly rounds: number;
  readonly operations: number;
  /** Operations per second, the median of the rounds. */
  readonly throughput: number;
  readonly throughputOfRounds: readonly number[];
  /** Percentiles of the milliseconds of the operations of all rounds. */
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  /** CPU seconds of the server per thousand operations. */
  readonly cpuPerThousand: number | undefined;
  /** Resident memory of the server at the end. */
  readonly residentBytes: number | undefined;
  /** Share of the time (0 to 1) in which the load generator was busy: the highest share of a round. */
  readonly generatorBusy: number;
  /** The median of each of `Measurement.figures` over the rounds. */
  readonly figures: Readonly<Record<string, number>>;
}

/** The results of a load by target. */
export type Results = Readonly<Partial<Record<TargetKind, Result>>>;

/** A goal of `docs/benchmarks.md`, as a figure that is compared with a limit. */
export interface Goal {
  /** For example "% of the ceiling". */
  readonly unit: string;
  /** Returns the figure; `undefined` when a target whose result is needed did not run. */
  figure(results: Results): number | undefined;
  readonly atLeast?: number;
  readonly atMost?: number;
}

/** Load on a target, for some seconds in each round. */
export interface Load<Setup> {
  /** Identifies the load in the results as JSON. */
  readonly name: string;
  /** Describes the load in printed results. */
  readonly title: string;
  /** Plural name of the operations that are counted. */
  readonly operation: string;
  readonly goals: readonly Goal[];
  /** Set for loads that need only one round and no warm-up. */
  readonly runsOnce?: true;
  /** Runs one round. @param seconds duration; loads of a fixed size ignore it */
  run(setup: Setup, seconds: number): Promise<Measurement>;
}

/** A situation on a server, and the loads that are measured in it. */
export interface Scenario<Setup = unknown> {
  readonly name: string;
  readonly targets: readonly TargetKind[];
  readonly loads: readonly Load<Setup>[];
  /** Set for scenarios that run only when the command line names them. */
  readonly isLong?: true;
  /** Creates the accounts, rooms and other data that the loads need. */
  prepare(target: Target): Promise<Setup>;
  /** Closes the connections. */
  dispose(setup: Setup): void;
}
