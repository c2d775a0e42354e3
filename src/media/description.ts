import { invalidParam } from '../protocol/index.ts';
import type { MediaDescription } from './media-file.ts';

/** Content type of files whose type is unknown. */
export const unknownType = 'application/octet-stream';

/**
 * Maximum number of bytes of a file name: eight times the limit of common file systems, and small enough for a header.
 */
const maxNameBytes = 2_048;

const mediaType = /^[\w!#$&^.+-]{1,127}\/[\w!#$&^.+-]{1,127}(?:[ \t]*;[\x20-\x7e\t]*)?$/;

/** Returns the content type in a header with its parameters, or `unknownType` for an invalid header. */
export function contentTypeOf(header: string | readonly string[] | undefined): string {
  const text = typeof header === 'string' ? header.trim() : '';
  return text.length <= 255 && mediaType.test(text) ? text : unknownType;
}

/** Returns a content type without parameters: `text/html` for `Text/HTML; charset=utf-8`. */
export const essenceOf = (contentType: string) => contentType.split(';', 1)[0]!.trim().toLowerCase();

/** Returns the content type and file name that are stored for an upload. @throws MatrixError M_INVALID_PARAM for an invalid file name */
export function describeUpload(
  contentType: string | readonly string[] | undefined,
  fileName: string | undefined,
): MediaDescription {
  const name = fileName === '' ? undefined : fileName;
  if (name !== undefined && !isFileName(name)) throw invalidParam('Invalid file name');
  return { contentType: contentTypeOf(contentType), fileName: name };
}

/**
 * Reports whether a file name can be stored and served. Slashes and other special characters are allowed: clients must
 * handle them.
 */
export function isFileName(name: string): boolean {
  return !name.includes('\0') && name.isWellFormed() && Buffer.byteLength(name) <= maxNameBytes;
}
