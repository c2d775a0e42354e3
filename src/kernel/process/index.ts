/** The process and its host. */
export { builtInLogin } from './config.ts';
export { limitOpenFiles } from './file-limit.ts';
export { HeapGrowth } from './heap-growth.ts';
export { IdleCollection } from './idle-collection.ts';
export { keepObjectPrototype } from './keep-object-prototype.ts';
export { ownCommand } from './own-command.ts';
export { ServiceManager } from './service-manager.ts';
export { type Stall, StallWatch } from './stall-watch.ts';
export { stayAlive } from './stay-alive.ts';
