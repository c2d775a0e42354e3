import type { Findings, Position } from '../problems.ts';

/** Where a value is read: its path in the document, its place in the file, and where findings go. */
export interface ReadContext {
  readonly findings: Findings;
  readonly path: string;
  /** The place of the option's name, for values that have no better place of their own. */
  readonly at?: Position | undefined;
  /** A surrounding option is secret, so nothing in here may be quoted. */
  readonly secret?: boolean;
}
