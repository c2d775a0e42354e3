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
  | { readonly kind: 'begin' | 'commit' | 'savepoint' | 'release' | 'undo' | 'forget-statements' }
  /** One statement; in a writer, it runs inside a savepoint. */
  | { readonly kind: 'query'; readonly sql: string; readonly parameters: readonly unknown[] }
  /** Statements that take effect together or not at all, with their own savepoint. */
  | { readonly kind: 'batch'; readonly statements: readonly Statement[] };

/**
 * Operations run in order. When an operation other than a query or a batch fails, the operations after it are skipped.
 */
export interface Request {
  readonly id: number;
  readonly operations: readonly Operation[];
}

/** The result of one operation. Operations without a result have neither member. */
export interface Result {
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

/** Messages of a worker. A worker that cannot open its connection ends without a message. */
export type ToWorkerClient = Response | 'closed';

/** Runs operations: a worker thread, from the view of the calling thread. */
export interface Executor {
  /** Runs the operations in order and resolves with a result for each. */
  send(operations: readonly Operation[]): Promise<readonly Result[]>;
}
