/** The program of the process that reads untrusted images (decision 0118). Only this process loads the image library. */
import { performTasks } from '../../kernel/task-processes/index.ts';
import type { ImageResult, ImageTask } from './image-task.ts';

await performTasks<ImageTask, ImageResult>(async () => {
  const { performImageTask } = await import('./perform-image-task.ts');
  return performImageTask;
});
