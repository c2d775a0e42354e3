/** The byte of `"`. */
export const jsonQuote = 0x22;
const backslash = 0x5c;

/**
 * Finds the end of a JSON string in bytes that have not been parsed.
 * @param start index of the byte after the opening quote
 * @returns index of the closing quote; the length of `bytes` if there is none
 */
export function endOfString(bytes: Buffer, start: number): number {
  let end = bytes.indexOf(jsonQuote, start);
  while (end !== -1 && isEscaped(bytes, end, start)) end = bytes.indexOf(jsonQuote, end + 1);
  return end === -1 ? bytes.length : end;
}

function isEscaped(bytes: Buffer, index: number, start: number): boolean {
  let first = index;
  while (first > start && bytes[first - 1] === backslash) first--;
  return (index - first) % 2 === 1;
}
