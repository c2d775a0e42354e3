import { invalidParam } from '../protocol/index.ts';
import type { MediaDescription } from './media-file.ts';

/** What cannot be told apart from anything else. */
export const unknownType = 'application/octet-stream';

/** Bytes of a file name: eight times what file systems take, and little in a header. */
const longestName = 2_048;

const mediaType = /^[\w!#$&^.+-]{1,127}\/[\w!#$&^.+-]{1,127}(?:[ \t]*;[\x20-\x7e\t]*)?$/;

/** The type that a header names, as it is written there, or the unknown one when it is none. */
export function contentTypeOf(header: string | readonly string[] | undefined): string {
  const text = typeof header === 'string' ? header.trim() : '';
  return text.length <= 255 && mediaType.test(text) ? text : unknownType;
}

/** `text/html` of `Text/HTML; charset=utf-8`. */
export const essenceOf = (contentType: string) => contentType.split(';', 1)[0]!.trim().toLowerCase();

/** @throws MatrixError M_INVALID_PARAM for a name that can not be one */
export function describeUpload(
  contentType: string | readonly string[] | undefined,
  fileName: string | undefined,
): MediaDescription {
  const name = fileName === '' ? undefined : fileName;
  if (name !== undefined && !isFileName(name)) throw invalidParam('This can not be the name of a file');
  return { contentType: contentTypeOf(contentType), fileName: name };
}

/** Whether it can be kept and served again; slashes and the like are the client's business. */
export function isFileName(name: string): boolean {
  return !name.includes('\0') && name.isWellFormed() && Buffer.byteLength(name) <= longestName;
}
