/** The process and its host. */
export { limitOpenFiles } from './file-limit.ts';
export { IdleCollection } from './idle-collection.ts';
