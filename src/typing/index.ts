/** Who is typing where. */
export { typingRoutes } from './routes.ts';
export { typingSyncSource } from './sync-source.ts';
export { Typing, type TypingChange, type TypingDeps } from './typing.ts';
