import { invalidParam, MatrixError } from '../../../protocol/index.ts';
import type { ParsedQuery } from '../routing/route-table.ts';

/** Maximum fields of one form. */
const maxFields = 1000;

const formType = /^application\/x-www-form-urlencoded\s*(;|$)/i;

/** @throws MatrixError 415 M_UNKNOWN for any other content type */
export function requireFormType(contentType: string | undefined): void {
  if (contentType !== undefined && formType.test(contentType)) return;
  throw new MatrixError(415, 'M_UNKNOWN', 'The body must be application/x-www-form-urlencoded');
}

/**
 * Parses an `application/x-www-form-urlencoded` body (URL standard, "application/x-www-form-urlencoded
 * parsing"). Rejects bytes that the standard replaces by U+FFFD: a changed password or token must not be mistaken
 * for the sent one.
 * @returns an object without a prototype; the values of a repeated name are a list
 * @throws MatrixError M_INVALID_PARAM for broken percent-encoding, invalid UTF-8 or more than 1,000 fields
 */
export function parseForm(bytes: Buffer): ParsedQuery {
  const form: Record<string, string | string[]> = Object.create(null);
  const fields = bytes.toString('latin1').split('&', maxFields + 1);
  if (fields.length > maxFields) throw invalidParam(`The form has more than ${maxFields} fields`);
  for (const field of fields) {
    if (field === '') continue;
    const equals = field.indexOf('=');
    const name = decode(equals === -1 ? field : field.slice(0, equals));
    const value = equals === -1 ? '' : decode(field.slice(equals + 1));
    const known = form[name];
    if (known === undefined) form[name] = value;
    else if (Array.isArray(known)) known.push(value);
    else form[name] = [known, value];
  }
  return form;
}

/**
 * Decodes a name or value.
 * @param text one character per byte; bytes that are not ASCII are decoded as UTF-8
 */
function decode(text: string): string {
  const encoded = text
    .replaceAll('+', ' ')
    .replace(/[\x80-\xff]/g, (byte) => `%${byte.charCodeAt(0).toString(16)}`);
  if (!encoded.includes('%')) return encoded;
  try {
    return decodeURIComponent(encoded);
  } catch {
    throw invalidParam('The form is not properly percent-encoded UTF-8');
  }
}
