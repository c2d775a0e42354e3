/** Returns the first line of a text with its white space, which may belong to a password. */
export const firstLine = (text: string): string => text.split(/\r?\n/, 1)[0]!;
