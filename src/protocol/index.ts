/** The public interface of the protocol layer: pure functions and data, without I/O. */

export * from './authorization/index.ts';
export * from './crypto/index.ts';
export * from './errors.ts';
export * from './event.ts';
export * from './events/index.ts';
export * from './globs/index.ts';
export * from './history-visibility/index.ts';
export * from './identifiers/index.ts';
export * from './json/index.ts';
export * from './json.ts';
export * from './power-levels/index.ts';
export * from './push-rules/index.ts';
export * from './relations/index.ts';
export * from './room-summary/index.ts';
export * from './room-versions.ts';
export * from './server-acls/index.ts';
export * from './state-resolution/index.ts';
