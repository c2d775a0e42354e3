/** Estimated bytes of a string besides its characters. */
const stringBytes = 24;

/** Estimated bytes of an object or array besides its members. */
const objectBytes = 56;

/** Estimated bytes of a member of an object or array besides its value. */
const memberBytes = 16;

/** Maximum characters of a member name that counts as shared: other objects have members of the same name. */
const maxSharedName = 32;

/**
 * Maximum number of members of an object whose short names count as shared. A larger object is taken for a map, whose
 * names other objects do not have.
 */
const maxSharedNames = 50;

/** Estimates the bytes of memory of a JSON value. Strings count one byte per character. */
export function sizeOfJson(value: unknown): number {
  if (typeof value === 'string') return stringBytes + value.length;
  if (typeof value !== 'object' || value === null) return 0;
  let bytes = objectBytes;
  if (Array.isArray(value)) for (const element of value) bytes += memberBytes + sizeOfJson(element);
  else bytes += sizeOfMembers(value as Record<string, unknown>);
  return bytes;
}

function sizeOfMembers(object: Record<string, unknown>): number {
  let bytes = 0;
  let count = 0;
  for (const name in object) {
    bytes += memberBytes + sizeOfJson(object[name]);
    if (name.length > maxSharedName || ++count > maxSharedNames) bytes += stringBytes + name.length;
  }
  return bytes;
}
