/** Typing notifications: the users who are typing in each room. */

export { openTyping } from './open.ts';
export { Typing, type TypingChange, type TypingDeps } from './typing.ts';
