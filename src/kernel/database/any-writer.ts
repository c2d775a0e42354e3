import type { Writer } from './database.ts';

/**
 * A writer whose tables are not named: what one slice hands another, so that both take part in one transaction
 * without knowing each other's tables. Every `Writer` is one.
 */
export interface AnyWriter {
  readonly isTransaction: true;
}

/** The same writer, for the tables of the slice that asks. */
export function writerFor<S>(writer: AnyWriter): Writer<S> {
  return writer as Writer<S>;
}
