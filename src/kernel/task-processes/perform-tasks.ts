import { writeFileSync } from 'node:fs';
import { setPriority } from 'node:os';

/** What a process says: that it is ready, or why it never will be, or what a task has come to. */
export type Saying<R> =
  | { readonly kind: 'ready' }
  | { readonly kind: 'broken'; readonly detail: string }
  | { readonly kind: 'done'; readonly result: R };

/**
 * The whole of a program that `TaskProcesses` runs: does the tasks it is sent, one after the other, and ends with its
 * parent.
 * @param prepare loads what is needed; its failure is told, and ends the process
 */
export async function performTasks<T, R>(prepare: () => Promise<(task: T) => Promise<R>>): Promise<void> {
  // At once, and not in good order: a library may be in the middle of something that never ends.
  process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
  giveWay();
  let perform: (task: T) => Promise<R>;
  try {
    perform = await prepare();
  } catch (error) {
    return say({ kind: 'broken', detail: String(error).slice(0, 1_000) }, () => process.exit(1));
  }
  process.on('message', async (task: T) => say({ kind: 'done', result: await perform(task) }));
  say({ kind: 'ready' });
}

const say = (saying: Saying<unknown>, then?: () => void) => void process.send?.(saying, undefined, {}, then);

/** The server goes first, with the processor and when memory runs out. */
function giveWay(): void {
  for (const step of [() => setPriority(10), () => writeFileSync('/proc/self/oom_score_adj', '800')]) {
    try {
      step();
    } catch {
      // This machine does not have that, or does not allow it.
    }
  }
}
