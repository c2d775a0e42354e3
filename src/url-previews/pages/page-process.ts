/** The program of the process that parses untrusted pages (decision 0170). Only this process loads the HTML parser. */
import { performTasks } from '../../kernel/task-processes/index.ts';
import type { PageResult, PageTask } from './page-task.ts';

await performTasks<PageTask, PageResult>(async () => {
  const { performPageTask } = await import('./perform-page-task.ts');
  return performPageTask;
});
