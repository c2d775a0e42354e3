/** Reads untrusted pictures in a process of its own (decision 0118). No other program loads the library. */
import { performTasks } from '../../kernel/task-processes/index.ts';
import type { PictureResult, PictureTask } from './picture-task.ts';

await performTasks<PictureTask, PictureResult>(async () => {
  const { performPictureTask } = await import('./perform-picture-task.ts');
  return performPictureTask;
});
