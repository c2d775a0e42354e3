/**
 * Returns a name that a user has chosen, for use in one line of a mail: without control characters, and without characters
 * that change the direction of the text after the name.
 */
export const plainName = (name: string): string =>
  name.replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ').replace(/[\u202a-\u202e\u2066-\u2069]/gu, '');
