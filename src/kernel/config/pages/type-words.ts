import type { OptionSchema } from '../option.ts';
import type { GrammarName } from '../values/grammars.ts';

const grammarWords: Readonly<Record<GrammarName, string>> = {
  duration: 'duration',
  size: 'size',
  'file-mode': 'permissions in octal',
  digits: 'integer',
  version: 'version',
  cidr: 'address range (CIDR)',
  glob: 'pattern with `*` and `?`',
  'regular-expression': 'regular expression',
  'glob-or-regular-expression': 'pattern, or regular expression after `^`',
};

/** Describes the type of an option in a few words, for the reference. */
export function typeWords(schema: OptionSchema): string {
  const types = [schema.type ?? []].flat();
  const orNull = types.includes('null') || schema.enum?.includes(null) ? ' or null' : '';
  return `${typeWithoutNull(schema, types)}${orNull}`;
}

function typeWithoutNull(schema: OptionSchema, types: readonly string[]): string {
  if (schema.enum && schema['x-grammar'] === undefined) return oneOfWords(schema.enum);
  if (schema['x-allowed'] !== undefined) return schema['x-allowed'];
  const shorthand = schema['x-shorthand'];
  const inner = shorthand === undefined ? undefined : schema.properties?.[shorthand];
  if (inner) return `${typeWords(inner)}, or mapping`;
  if (schema.anyOf) return schema.anyOf.map(typeWords).join(', or ');
  const grammar = schema['x-grammar'];
  if (grammar !== undefined) return grammarWords[grammar];
  if (schema.items) return `list of: ${typeWords(schema.items)}`;
  if (typeof schema.additionalProperties === 'object')
    return `mapping of names to: ${typeWords(schema.additionalProperties)}`;
  const [first = 'text'] = types.filter((type) => type !== 'null');
  return { object: 'mapping', string: 'text' }[first] ?? first;
}

function oneOfWords(values: readonly unknown[]): string {
  const words = values.filter((value) => value !== null).map((value) => `\`${value}\``);
  return words.length === 1 ? words.join('') : `one of ${words.join(', ')}`;
}

/**
 * Returns further notes on an option, one sentence each: its unit, its changes in releases, other names, and how it is
 * used.
 */
export function notesOf(schema: OptionSchema): string[] {
  const since = schema['x-since'];
  const unit = schema['x-unit'];
  const names = schema['x-deprecated-names'] ?? [];
  const replacedOption = schema['x-file-for'];
  return [
    ...(unit === undefined ? [] : [`Unit: ${unit}.`]),
    ...(since === undefined ? [] : [`Since ${since}.`]),
    ...(schema['x-changed'] ?? []).map((change) =>
      change.match(/^[0-9]/) ? `Changed in ${change}` : change,
    ),
    ...(names.length === 0 ? [] : [`Also accepted as: ${names.map((name) => `\`${name}\``).join(', ')}.`]),
    ...(schema.deprecated ? ['Deprecated.'] : []),
    ...(schema['x-secret'] ? ['Secret: never shown or logged.'] : []),
    ...(replacedOption === undefined
      ? []
      : [`Cannot be given together with \`${replacedOption}\`. The file is read once, at start.`]),
    ...(schema['x-reloadable'] ? ['A reload (SIGHUP) applies a change.'] : []),
  ];
}
