/**
 * Runs work that may crash or never end in separate processes. This file imports nothing else, so that such a
 * process starts quickly.
 */
export { performTasks } from './perform-tasks.ts';
export { type FailureReason, TaskFailure } from './task-failure.ts';
export { type TaskLimits, TaskProcesses, type TaskProcessesDeps } from './task-processes.ts';
