/** The process and its host. */
export { type ProcessConfig, processSection } from './config.ts';
export { limitOpenFiles } from './file-limit.ts';
