import type { Statement } from '../statement.ts';
import type { SqliteFile, Table } from './connection.ts';
import type { PlainError } from './errors.ts';

/** What a worker is to open. */
export interface WorkerOptions {
  readonly file: SqliteFile;
  readonly access: 'reading' | 'writing';
}

/** One step of what a worker is asked to do. */
export type Operation =
  | { readonly kind: 'begin' | 'commit' | 'savepoint' | 'release' | 'undo' | 'forget-statements' }
  /** One statement; of a writer, inside a savepoint. */
  | { readonly kind: 'query'; readonly sql: string; readonly parameters: readonly unknown[] }
  /** Statements that take effect together or not at all; a savepoint by themselves. */
  | { readonly kind: 'batch'; readonly statements: readonly Statement[] };

/** Operations are done in order. When one fails that is not a query or a batch, those after it are not done. */
export interface Request {
  readonly id: number;
  readonly operations: readonly Operation[];
}

/** How one operation went; those without a result give neither. */
export interface Result {
  readonly table?: Table;
  readonly error?: PlainError;
}

/** One result for each operation. */
export interface Response {
  readonly id: number;
  readonly results: readonly Result[];
}

/** What a worker is told: to open a connection, what to do with it, and to close it; then it may open another. */
export type ToWorker = { readonly open: WorkerOptions } | Request | 'close';

/** What a worker tells. When it can not open, it ends. */
export type ToWorkerClient = Response | 'closed';

/** Somewhere operations are done: a worker thread, seen from the thread that asks. */
export interface Executor {
  /** Has the operations done in order, and resolves with a result for each. */
  send(operations: readonly Operation[]): Promise<readonly Result[]>;
}
