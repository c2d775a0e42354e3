/** Estimated bytes of a string besides its characters, of an object with its own map slots, and of one member. */
const [stringBytes, objectBytes, memberBytes] = [24, 56, 16];

/** Estimates the bytes of memory of a JSON value. Strings count one byte per character. */
export function sizeOfJson(value: unknown): number {
  if (typeof value === 'string') return stringBytes + value.length;
  if (typeof value !== 'object' || value === null) return 0;
  let bytes = objectBytes;
  if (Array.isArray(value)) for (const element of value) bytes += memberBytes + sizeOfJson(element);
  else for (const key in value) bytes += memberBytes + sizeOfJson((value as Record<string, unknown>)[key]);
  return bytes;
}
