/** The byte of `"`. */
export const quoteByte = 0x22;
const backslash = 0x5c;

/**
 * Finds the end of a JSON string in bytes that have not been parsed.
 * @param start index of the byte after the opening quote
 * @returns index of the closing quote; the length of `bytes` if there is none
 */
export function endOfString(bytes: Buffer, start: number): number {
  let end = indexOfQuote(bytes, start);
  while (end !== -1 && isEscaped(bytes, end, start)) end = indexOfQuote(bytes, end + 1);
  return end === -1 ? bytes.length : end;
}

/** Number of bytes that are compared before `Buffer.indexOf` is called: for a short string the call costs more. */
const maxShortString = 32;

/** Returns the index of the next quote at or after `start`; -1 if there is none. */
export function indexOfQuote(bytes: Buffer, start: number): number {
  const shortEnd = Math.min(start + maxShortString, bytes.length);
  for (let index = start; index < shortEnd; index++) if (bytes[index] === quoteByte) return index;
  return bytes.indexOf(quoteByte, shortEnd);
}

function isEscaped(bytes: Buffer, index: number, start: number): boolean {
  let first = index;
  while (first > start && bytes[first - 1] === backslash) first--;
  return (index - first) % 2 === 1;
}
