export type { LocalpartAndServer } from './domain.ts';
export * from './event-ids.ts';
export * from './length.ts';
export * from './other-ids.ts';
export * from './room-ids.ts';
export * from './server-names.ts';
export * from './user-ids.ts';
