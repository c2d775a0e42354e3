/** The process and its host. */
export { limitOpenFiles } from './file-limit.ts';
