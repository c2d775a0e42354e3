/** The size limit of every identifier, sigil and server name included. Source: appendices, "Identifier Grammar". */
const MAX_IDENTIFIER_BYTES = 255;

/**
 * Whether text takes at most `max` bytes of UTF-8. Counts bytes only where the number of UTF-16 units is
 * not enough to decide.
 */
export function fitsBytes(text: string, max: number = MAX_IDENTIFIER_BYTES): boolean {
  if (text.length * 3 <= max) return true;
  return text.length <= max && Buffer.byteLength(text) <= max;
}

/** Whether text has at most `max` Unicode code points. */
export function fitsCodePoints(text: string, max: number): boolean {
  if (text.length <= max) return true;
  if (text.length > 2 * max) return false;
  let count = 0;
  for (const _ of text) count++;
  return count <= max;
}
