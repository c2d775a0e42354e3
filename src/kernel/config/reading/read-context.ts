import type { Findings, Position } from '../problems.ts';

/** Where a value is read: its path in the document, its place in the file, and the collector of problems. */
export interface ReadContext {
  readonly findings: Findings;
  readonly path: string;
  /** The place of the option's name, for values without a place of their own. */
  readonly at?: Position | undefined;
  /** A surrounding option is secret, so messages must not quote anything inside. */
  readonly secret?: boolean;
}
