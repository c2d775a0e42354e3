/**
 * Prevents the code of this process from adding members to `Object.prototype`. Every object would have such a member,
 * and the server fails when its objects have unknown members. Code in strict mode that adds one receives a TypeError.
 * Modules may add one unknowingly, when they merge objects that a user has sent.
 */
export function keepObjectPrototype(): void {
  Object.preventExtensions(Object.prototype);
}
