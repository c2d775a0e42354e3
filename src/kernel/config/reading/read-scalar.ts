import type { OptionSchema } from '../option.ts';
import type { SourceScalar } from '../sources/source.ts';
import { grammars } from '../values/grammars.ts';
import type { ReadContext } from './read-context.ts';
import { describeAllowed, describeFound } from './wording.ts';

/** Reads a scalar by its schema. Reports an error and returns undefined when it is not allowed. */
export function readScalar(schema: OptionSchema, node: SourceScalar, context: ReadContext): unknown {
  const value = interpret(schema, node);
  if (value !== undefined && satisfies(schema, value)) return value;
  const found = describeFound(schema, node, context.secret === true);
  context.findings.error(
    context.path,
    `found ${found}; allowed: ${describeAllowed(schema)}${isWronglyQuoted(schema, node) ? ': write it without quotes' : ''}`,
    node.at ?? context.at,
  );
  return undefined;
}

/** Whether a value in quotes would be read as a boolean or a number if it were written without them. */
function isWronglyQuoted(schema: OptionSchema, node: SourceScalar): boolean {
  if (node.plain || typeof node.value !== 'string' || node.text.trim() === '') return false;
  const number = Number(node.text);
  const value = Number.isNaN(number) ? node.value : number;
  return ['boolean', 'number'].includes(typeof interpret(schema, { ...node, plain: true, value }));
}

/** Boolean words of YAML 1.1, without quotes. */
const booleanWords = new Map<string, boolean>(
  ['yes', 'on', 'true']
    .flatMap((word) => spellings(word, true))
    .concat(['no', 'off', 'false'].flatMap((word) => spellings(word, false))),
);

function interpret(schema: OptionSchema, node: SourceScalar): unknown {
  const grammar = schema['x-grammar'];
  if (grammar !== undefined) return isTextual(node) ? grammars[grammar].parse(node.text) : undefined;
  if (schema.enum) return interpretWord(schema.enum, node);
  const types = [schema.type].flat();
  if (types.includes('boolean')) return booleanOf(node);
  if (types.includes('integer')) return Number.isSafeInteger(node.value) ? node.value : undefined;
  if (types.includes('number')) return Number.isFinite(node.value) ? node.value : undefined;
  return isTextual(node) ? node.text : undefined;
}

/** A number without quotes may be read as text; null and booleans may not. */
function isTextual(node: SourceScalar): boolean {
  return typeof node.value === 'string' || typeof node.value === 'number';
}

function interpretWord(words: readonly unknown[], node: SourceScalar): unknown {
  if (words.includes(node.text) && node.text !== '') return node.text;
  const truth = booleanOf(node);
  return words.includes(truth) ? truth : undefined;
}

function booleanOf(node: SourceScalar): boolean | undefined {
  if (typeof node.value === 'boolean') return node.value;
  return node.plain ? booleanWords.get(node.text) : undefined;
}

function satisfies(schema: OptionSchema, value: unknown): boolean {
  if (typeof value === 'number') {
    const { minimum = -Infinity, exclusiveMinimum = -Infinity, maximum = Infinity } = schema;
    return (
      value >= minimum && (value > exclusiveMinimum || exclusiveMinimum === -Infinity) && value <= maximum
    );
  }
  if (typeof value !== 'string') return true;
  if (schema['x-grammar'] === 'version' && schema.enum) return schema.enum.includes(value);
  if (value.length < (schema.minLength ?? 0)) return false;
  return schema.pattern === undefined || new RegExp(schema.pattern, 'u').test(value);
}

function spellings(word: string, value: boolean): [string, boolean][] {
  const capitalised = word.charAt(0).toUpperCase() + word.slice(1);
  return [word, capitalised, word.toUpperCase()].map((spelling) => [spelling, value]);
}
