/**
 * Lets no code of this process add members to `Object.prototype`: every object would have them, and a server whose objects
 * have unknown members fails. Code in strict mode that tries it receives a TypeError. Modules may try it unknowingly, when
 * they merge objects that a user has sent.
 */
export function keepObjectPrototype(): void {
  Object.preventExtensions(Object.prototype);
}
