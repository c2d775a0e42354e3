import type { OptionSchema } from '../option.ts';
import type { Sections } from '../reading/load.ts';
import { sectionOptions } from '../section.ts';
import { formatDuration } from '../values/duration.ts';
import { formatFileMode } from '../values/file-mode.ts';
import { formatSize } from '../values/size.ts';

/** Replaces secrets. */
const mask = '<secret>';

/** Matches the names of members whose values are taken for secrets, in content of any form. */
const secretName = /secret|passw|passphrase|token|credential|dsn|key(?!_?(id|file|path|server))/i;

/**
 * Returns the effective document: every option with its value as written in a file, with secrets masked.
 * Reading it again returns the same values except for secrets.
 */
export function effectiveDocument(
  values: Readonly<Record<string, unknown>>,
  sections: Sections,
): Record<string, unknown> {
  const document: Record<string, unknown> = {};
  for (const [name, section] of Object.entries(sections)) {
    const sectionValues = values[name] as Readonly<Record<string, unknown>>;
    for (const [option, schema] of Object.entries(sectionOptions(section))) {
      document[option] = written(schema, sectionValues[option]);
    }
  }
  return document;
}

function written(schema: OptionSchema, value: unknown): unknown {
  if (value === null || value === undefined) return null;
  if (schema['x-secret']) return isEmpty(value) ? value : mask;
  if (Array.isArray(value)) return value.map((item) => written(schema.items ?? {}, item));
  if (typeof value === 'object') return writtenMembers(schema, value as Readonly<Record<string, unknown>>);
  if (typeof value === 'string') return withoutUser(value);
  if (typeof value !== 'number') return value;
  if (schema['x-grammar'] === 'duration') return formatDuration(value);
  if (schema['x-grammar'] === 'size') return value === 0 ? 0 : formatSize(value);
  return schema['x-grammar'] === 'file-mode' ? formatFileMode(value) : value;
}

function writtenMembers(
  schema: OptionSchema,
  value: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const others = typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined;
  const members = Object.entries(value).map(([name, member]) => {
    const known = schema.properties?.[name] ?? others;
    return [name, known ? written(known, member) : masked(name, member)];
  });
  return Object.fromEntries(members);
}

/** Masks the user name and the password of a URL. */
const withoutUser = (text: string): string => text.replace(/([a-z]:\/\/)[^/?#@\s]+@/gi, `$1${mask}@`);

/** Masks the secrets in free-form content. Only the names of its members show which values are secrets. */
function masked(name: string, value: unknown): unknown {
  if (secretName.test(name) && !isEmpty(value)) return mask;
  if (Array.isArray(value)) return value.map((item) => masked('', item));
  if (typeof value === 'string') return withoutUser(value);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([inner, member]) => [inner, masked(inner, member)]));
}

function isEmpty(value: unknown): boolean {
  return value === null || value === '' || (typeof value === 'object' && Object.keys(value).length === 0);
}
