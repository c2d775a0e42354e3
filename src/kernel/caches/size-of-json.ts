/** Estimated bytes of a string besides its characters. */
const stringBytes = 24;

/** Estimated bytes of an object or array besides its members. */
const objectBytes = 56;

/** Estimated bytes of a member of an object or array besides its value. */
const memberBytes = 16;

/** Estimates the bytes of memory of a JSON value. Strings count one byte per character. */
export function sizeOfJson(value: unknown): number {
  if (typeof value === 'string') return stringBytes + value.length;
  if (typeof value !== 'object' || value === null) return 0;
  let bytes = objectBytes;
  if (Array.isArray(value)) for (const element of value) bytes += memberBytes + sizeOfJson(element);
  else for (const key in value) bytes += memberBytes + sizeOfJson((value as Record<string, unknown>)[key]);
  return bytes;
}
