/** Typing notifications: the users who are typing in each room. */
export { typingRoutes } from './routes.ts';
export { typingSyncSource } from './sync-source.ts';
export { Typing, type TypingChange, type TypingDeps } from './typing.ts';
