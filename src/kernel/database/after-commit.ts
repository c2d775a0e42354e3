import type { Logger } from '../observability/logger.ts';
import type { AnyWriter } from './any-writer.ts';
import type { Writer } from './database.ts';

type Callback = () => void;

/** By executor, which a writer shares with those that are derived from it. */
const callbacks = new WeakMap<object, Callback[]>();

const keyOf = (writer: AnyWriter) => (writer as Writer<unknown>).getExecutor();

/**
 * Calls `callback` once the transaction of `writer` is on disk, before `Database.transaction` resolves; never, when it
 * is undone. It must be short; what it throws is logged and changes nothing.
 */
export function afterCommit(writer: AnyWriter, callback: Callback): void {
  const waiting = callbacks.get(keyOf(writer));
  if (waiting) waiting.push(callback);
  else callbacks.set(keyOf(writer), [callback]);
}

/** For the databases: the transaction of `writer` is on disk. */
export function runAfterCommit(writer: AnyWriter, log: Logger): void {
  for (const callback of callbacks.get(keyOf(writer)) ?? []) {
    try {
      callback();
    } catch (error) {
      log.error({ err: error }, 'what was to follow a commit has failed');
    }
  }
}
