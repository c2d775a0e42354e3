import type { Findings, Position } from '../problems.ts';

/** The place of a value that is being read, for the problems that are reported about it. */
export interface ReadContext {
  readonly findings: Findings;
  /** Path of the value in the document, for example `listeners[0].port`. */
  readonly path: string;
  /** Position of the option's name in the file, for values that have no position. */
  readonly at?: Position | undefined;
  /** Whether the value is inside a secret option, so that messages must not quote it. */
  readonly secret?: boolean;
}
