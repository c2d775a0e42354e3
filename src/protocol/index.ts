/** The face of the protocol: pure functions and data, without I/O. */
export * from './errors.ts';
export * from './event.ts';
export * from './json.ts';
export * from './room-versions.ts';
