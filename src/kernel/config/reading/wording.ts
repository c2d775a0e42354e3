import type { OptionSchema } from '../option.ts';
import type { SourceNode } from '../sources/source.ts';
import { grammars } from '../values/grammars.ts';

/** Maximum characters of a quoted value; the rest of a longer value is left out. */
const maxQuoteLength = 60;

/** Describes the values that a schema allows, in words that follow "allowed: ". */
export function describeAllowed(schema: OptionSchema): string {
  const types = [schema.type ?? []].flat();
  const orNull = types.includes('null') || schema.enum?.includes(null) === true ? ', or null' : '';
  return `${allowedWithoutNull(schema, types)}${orNull}`;
}

function allowedWithoutNull(schema: OptionSchema, types: readonly string[]): string {
  if (schema['x-allowed'] !== undefined) return schema['x-allowed'];
  if (schema.anyOf) return schema.anyOf.map(describeAllowed).join(', or ');
  const shorthand = schema['x-shorthand'];
  const inner = shorthand === undefined ? undefined : schema.properties?.[shorthand];
  if (inner) return `${describeAllowed(inner)}, or a mapping with ${shorthand}`;
  const grammar = schema['x-grammar'];
  if (grammar !== undefined) return `${grammars[grammar].allowed}${describeRange(schema)}`;
  if (schema.enum) {
    const words = schema.enum.filter((word) => word !== null);
    return words.length === 1 ? String(words[0]) : `one of ${words.join(', ')}`;
  }
  if (schema.items) return `a list${describeCount(schema)} of ${describeAllowed(schema.items)}`;
  if (types.includes('object')) return describeMapping(schema);
  if (types.includes('boolean')) return 'true or false';
  if (types.includes('integer')) return `a whole number${describeRange(schema)}`;
  if (types.includes('number')) return `a number${describeRange(schema)}`;
  return (schema.minLength ?? 0) > 0 ? 'a text that is not empty' : 'a text';
}

function describeMapping(schema: OptionSchema): string {
  const names = Object.keys(schema.properties ?? {});
  if (names.length > 0)
    return `a mapping with ${names.slice(0, 6).join(', ')}${names.length > 6 ? ', …' : ''}`;
  const values = schema.additionalProperties;
  return typeof values === 'object' ? `a mapping of names to ${describeAllowed(values)}` : 'a mapping';
}

/**
 * Describes the value in the file, in words that follow "found ". Quotes the value only if it cannot be a
 * secret.
 */
export function describeFound(schema: OptionSchema, node: SourceNode, secret: boolean): string {
  if (node.kind === 'list') return 'a list';
  if (node.kind === 'map') return 'a mapping';
  if (node.value === null && node.plain) return node.text === '' ? 'nothing' : 'null';
  const kind =
    typeof node.value === 'string' ? 'a text' : typeof node.value === 'number' ? 'a number' : 'a boolean';
  if (secret || schema['x-secret'] || holdsMembers(schema)) return kind;
  const quoted = typeof node.value === 'string' ? JSON.stringify(node.text) : node.text;
  return quoted.length > maxQuoteLength ? `${quoted.slice(0, maxQuoteLength)}…` : quoted;
}

/**
 * Whether an option is a list or a mapping. A scalar in its place may be anything, including a secret of one of its
 * members.
 */
function holdsMembers(schema: OptionSchema): boolean {
  return (
    schema.items !== undefined || schema.properties !== undefined || schema.additionalProperties !== undefined
  );
}

function describeRange({ minimum, exclusiveMinimum, maximum }: OptionSchema): string {
  if (exclusiveMinimum !== undefined) return ` above ${exclusiveMinimum}`;
  if (minimum !== undefined && maximum !== undefined) return ` from ${minimum} to ${maximum}`;
  if (minimum !== undefined) return minimum === 0 ? ' that is not negative' : ` of at least ${minimum}`;
  return maximum === undefined ? '' : ` of at most ${maximum}`;
}

function describeCount({ minItems, maxItems }: OptionSchema): string {
  if (minItems !== undefined && minItems === maxItems) return ` with exactly ${minItems} entries`;
  return minItems === undefined ? '' : ` with at least ${minItems} entries`;
}
