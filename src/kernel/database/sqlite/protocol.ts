import type { Statement } from '../statement.ts';
import type { SqliteFile, Table } from './connection.ts';
import type { PlainError } from './errors.ts';

/** Which connection a worker opens. */
export interface WorkerOptions {
  readonly file: SqliteFile;
  readonly access: 'reading' | 'writing';
}

/** One step of a request to a worker. */
export type Operation =
  /** `undo` rolls back to the savepoint and releases it. `forget-statements` drops the prepared statements. */
  | { readonly kind: 'begin' | 'commit' | 'savepoint' | 'release' | 'undo' | 'forget-statements' }
  /** One statement. In the writing worker, the caller has begun a savepoint before. */
  | { readonly kind: 'query'; readonly sql: string; readonly parameters: readonly unknown[] }
  /** Statements that take effect together or not at all. */
  | { readonly kind: 'batch'; readonly statements: readonly Statement[] };

/**
 * Operations run in order. When an operation that controls the transaction fails (`begin`, `commit`, `savepoint`,
 * `release`, `undo`), the operations after it are skipped: each has the same error as its result.
 */
export interface Request {
  readonly id: number;
  readonly operations: readonly Operation[];
}

/** The result of one operation. Operations without a result have neither member. */
export interface Result {
  /** The result of a query: its rows, or the number of rows that it changed. */
  readonly table?: Table;
  readonly error?: PlainError;
}

/** One result for each operation. */
export interface Response {
  readonly id: number;
  readonly results: readonly Result[];
}

/**
 * Messages to a worker: open a connection, run operations on it, close it. After `close`, it may open another
 * connection.
 */
export type ToWorker = { readonly open: WorkerOptions } | Request | 'close';

/** Messages from a worker to the thread that started it. A worker that cannot open its connection ends without a message. */
export type FromWorker = Response | 'closed';

/** The handle of a worker thread, with which the calling thread sends operations to it. */
export interface Executor {
  /** Runs the operations in order and resolves with a result for each. */
  send(operations: readonly Operation[]): Promise<readonly Result[]>;
}
