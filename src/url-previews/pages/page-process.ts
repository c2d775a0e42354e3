/** Reads untrusted pages in a process of its own (decision 0170). No other program loads the library. */
import { performTasks } from '../../kernel/task-processes/index.ts';
import type { PageResult, PageTask } from './page-task.ts';

await performTasks<PageTask, PageResult>(async () => {
  const { performPageTask } = await import('./perform-page-task.ts');
  return performPageTask;
});
