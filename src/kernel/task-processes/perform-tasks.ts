import { writeFileSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
import { setPriority } from 'node:os';

/** Messages of a task process: it is ready for tasks, its preparation has failed, or a task is done. */
export type ProcessMessage<R> =
  | { readonly kind: 'ready' }
  | { readonly kind: 'broken'; readonly detail: string }
  | { readonly kind: 'done'; readonly result: R };

/**
 * The whole program of a task process: performs the tasks that `TaskProcesses` sends, one after the other,
 * and ends with its parent.
 * @param prepare loads what tasks need and returns the function that performs them; its failure is reported
 * and ends the process
 */
export async function performTasks<T, R>(prepare: () => Promise<(task: T) => Promise<R>>): Promise<void> {
  // SIGKILL instead of a normal exit: a library may be inside an endless computation.
  process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
  lowerPriority();
  let perform: (task: T) => Promise<R>;
  try {
    perform = await prepare();
  } catch (error) {
    return send({ kind: 'broken', detail: String(error).slice(0, 1_000) }, () => process.exit(1));
  }
  // A process that is killed does not store its compiled code at its end.
  flushCompileCache();
  process.on('message', async (task: T) => send({ kind: 'done', result: await perform(task) }));
  send({ kind: 'ready' });
}

const send = (message: ProcessMessage<unknown>, then?: () => void) =>
  void process.send?.(message, undefined, {}, then);

/** Lowers the priority of this process for the processor and for memory below the priority of the server. */
function lowerPriority(): void {
  for (const step of [() => setPriority(10), () => writeFileSync('/proc/self/oom_score_adj', '800')]) {
    try {
      step();
    } catch {
      // The setting is not available or not permitted on this machine.
    }
  }
}
