/** Who is typing where. */
export { typingRoutes } from './routes.ts';
export { Typing, type TypingChange, type TypingDeps } from './typing.ts';
