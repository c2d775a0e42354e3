/** Threads for work that would block the event loop. */
export { SpareThreads } from './spare-threads.ts';
