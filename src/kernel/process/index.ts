/** The process and its host. */
export { processSection } from './config.ts';
export { limitOpenFiles } from './file-limit.ts';
