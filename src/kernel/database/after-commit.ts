import type { Logger } from '../observability/logger.ts';
import type { AnyWriter } from './any-writer.ts';
import type { Writer } from './database.ts';

type Callback = () => void;

/**
 * The callbacks of each transaction; the key is the executor of its writer. Writers that are derived from a writer have
 * the same executor.
 */
const callbacks = new WeakMap<object, Callback[]>();

const keyOf = (writer: AnyWriter) => (writer as Writer<unknown>).getExecutor();

/**
 * Calls `callback` once the transaction of `writer` is on disk, before `Database.transaction` resolves. Never calls it
 * when the transaction is rolled back. The callback must be short; its errors are logged and otherwise ignored.
 */
export function afterCommit(writer: AnyWriter, callback: Callback): void {
  const waiting = callbacks.get(keyOf(writer));
  if (waiting) waiting.push(callback);
  else callbacks.set(keyOf(writer), [callback]);
}

/** Runs the callbacks of a committed transaction. Called by the databases only. */
export function runAfterCommit(writer: AnyWriter, log: Logger): void {
  for (const callback of callbacks.get(keyOf(writer)) ?? []) {
    try {
      callback();
    } catch (error) {
      log.error({ err: error }, 'A callback after a commit failed');
    }
  }
}
