/** Reads untrusted images in a process of its own (decision 0118). No other program loads the library. */
import { performTasks } from '../../kernel/task-processes/index.ts';
import type { ImageResult, ImageTask } from './image-task.ts';

await performTasks<ImageTask, ImageResult>(async () => {
  const { performImageTask } = await import('./perform-image-task.ts');
  return performImageTask;
});
