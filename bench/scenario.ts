import type { Target, TargetKind } from './target.ts';

/** What one round of a load found. */
export interface Measurement {
  readonly operations: number;
  readonly seconds: number;
  /** Of each operation, in milliseconds. */
  readonly latencies: readonly number[];
  /** What only this load measures. */
  readonly figures?: Readonly<Record<string, number>>;
}

/** All rounds of a load on one target. */
export interface Result {
  readonly rounds: number;
  readonly operations: number;
  /** Operations per second: the median of the rounds. */
  readonly throughput: number;
  readonly throughputOfRounds: readonly number[];
  /** Milliseconds, over all rounds. */
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  /** Processor seconds of the server for a thousand operations. */
  readonly cpuPerThousand: number | undefined;
  /** Of the server at the end. */
  readonly residentBytes: number | undefined;
  /** Share of the time that the load itself was busy, in its worst round. */
  readonly generatorBusy: number;
  /** The median of the rounds. */
  readonly figures: Readonly<Record<string, number>>;
}

export type Results = Readonly<Partial<Record<TargetKind, Result>>>;

/** What is asked of Hearth in `docs/benchmarks.md`, as a figure that can be compared with a limit. */
export interface Goal {
  /** As in "52 % of the ceiling". */
  readonly unit: string;
  /** `undefined` when the target that it is compared with did not run. */
  figure(results: Results): number | undefined;
  readonly atLeast?: number;
  readonly atMost?: number;
}

/** Work that a target is put to, for some seconds in each round. */
export interface Load<Stage> {
  readonly name: string;
  readonly title: string;
  /** What is counted, in the plural. */
  readonly operation: string;
  readonly goals: readonly Goal[];
  /** One round is enough, and it needs no warming up. */
  readonly runsOnce?: true;
  /** One round. @param seconds how long; work of a fixed size does not look at it. */
  run(stage: Stage, seconds: number): Promise<Measurement>;
}

/** A situation on a server and the loads that are measured in it. */
export interface Scenario<Stage = unknown> {
  readonly name: string;
  readonly targets: readonly TargetKind[];
  readonly loads: readonly Load<Stage>[];
  /** Makes accounts, rooms and what else the loads need. */
  prepare(target: Target): Promise<Stage>;
  /** Ends the connections. */
  dispose(stage: Stage): void;
}
