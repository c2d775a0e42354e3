/** The process and its host. */
export { builtInLogin } from './config.ts';
export { limitOpenFiles } from './file-limit.ts';
export { IdleCollection } from './idle-collection.ts';
