/**
 * Runs work that may crash or never end in separate processes. This folder imports no other code of the server at run
 * time, so that these processes start quickly.
 */
export { performTasks } from './perform-tasks.ts';
export { type FailureReason, TaskFailure } from './task-failure.ts';
export { type TaskLimits, TaskProcesses, type TaskProcessesDeps } from './task-processes.ts';
