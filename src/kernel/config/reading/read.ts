import type { OptionSchema } from '../option.ts';
import { childPath, type Position } from '../problems.ts';
import { UnreadableValue } from '../rules.ts';
import {
  mapNode,
  nodeFromValue,
  type SourceList,
  type SourceMap,
  type SourceNode,
  scalarNode,
  valueFromNode,
} from '../sources/source.ts';
import { suggestion } from './nearest-name.ts';
import type { ReadContext } from './read-context.ts';
import { readScalar } from './read-scalar.ts';
import { describeAllowed, describeFound } from './wording.ts';

/**
 * Reads a value by its schema: checks it, parses texts by their grammar, and fills in defaults. Reports every
 * mistake and continues, so that all mistakes are reported at once.
 * @returns undefined when the value could not be read; inside lists and mappings, see `setValue`
 */
export function readValue(schema: OptionSchema, node: SourceNode, context: ReadContext): unknown {
  if (node.kind === 'scalar' && node.value === null && node.plain) {
    if (allowsNull(schema)) return null;
    if (node.text === '') return readEmpty(schema, context);
  }
  const shorthand = schema['x-shorthand'];
  if (shorthand !== undefined && node.kind === 'scalar') {
    return readValue(schema, mapNode([[shorthand, node]], context.at), context);
  }
  if (schema.anyOf) return readOneOfTypes(schema, schema.anyOf, node, context);
  if (node.kind === 'list' && schema.items) return readList(schema, schema.items, node, context);
  if (node.kind === 'map' && isMapping(schema)) return readMapping(schema, node, context);
  if (node.kind === 'scalar' && !isMapping(schema) && !schema.items) return readScalar(schema, node, context);
  return reportNotAllowed(schema, node, context);
}

/**
 * Returns the value of an option that is not given: `x-unset`, the default, or a mapping of the defaults of its
 * members. Reports an error for a required option.
 */
export function defaultValue(schema: OptionSchema, context: ReadContext): unknown {
  if (schema['x-required']) {
    context.findings.error(context.path, `must be given; allowed: ${describeAllowed(schema)}`, context.at);
    return undefined;
  }
  if (schema['x-unset'] !== undefined) return schema['x-unset'];
  if (schema.default !== undefined) return readValue(schema, nodeFromValue(schema.default), context);
  return isMapping(schema) ? readValue(schema, mapNode([], context.at), context) : undefined;
}

/**
 * Reads `name:` without a value as the default. Warns unless the option is a list or a mapping: files often contain
 * those with all entries commented out.
 */
function readEmpty(schema: OptionSchema, context: ReadContext): unknown {
  if (!schema['x-required'] && !schema.items && !isMapping(schema)) {
    context.findings.warn(context.path, 'has no value; its default is used', context.at);
  }
  return defaultValue(schema, context);
}

function readOneOfTypes(
  schema: OptionSchema,
  branches: readonly OptionSchema[],
  node: SourceNode,
  context: ReadContext,
): unknown {
  const fitting = branches.find((branch) => {
    if (node.kind === 'list') return branch.items !== undefined;
    return node.kind === 'map' ? isMapping(branch) : branch.items === undefined && !isMapping(branch);
  });
  return fitting ? readValue(fitting, node, context) : reportNotAllowed(schema, node, context);
}

function readList(
  schema: OptionSchema,
  items: OptionSchema,
  node: SourceList,
  context: ReadContext,
): unknown[] {
  const { minItems = 0, maxItems = Number.POSITIVE_INFINITY } = schema;
  if (node.items.length < minItems || node.items.length > maxItems) {
    const message = `found ${node.items.length} entries; allowed: ${describeAllowed(schema)}`;
    context.findings.error(context.path, message, context.at);
  }
  const result: unknown[] = [];
  for (const [index, item] of node.items.entries()) {
    const inner = { ...context, path: `${context.path}[${index}]`, at: item.at ?? context.at };
    setValue(result, index, readValue(items, item, inner));
  }
  return result;
}

function readMapping(schema: OptionSchema, node: SourceMap, context: ReadContext): Record<string, unknown> {
  const members = schema.properties ?? {};
  const result: Record<string, unknown> = {};
  for (const [name, member] of Object.entries(members)) {
    const entry = node.entries.get(name);
    const inner = memberContext(context, name, entry?.at, member);
    setValue(result, name, entry ? readValue(member, entry.node, inner) : defaultValue(member, inner));
  }
  for (const [name, { node: value, at }] of node.entries) {
    if (Object.hasOwn(members, name)) continue;
    const inner = memberContext(context, name, at, schema);
    if (typeof schema.additionalProperties === 'object') {
      checkName(schema.propertyNames, name, inner);
      setValue(result, name, readValue(schema.additionalProperties, value, inner));
    } else if (schema.additionalProperties === true) result[name] = valueFromNode(value);
    else
      inner.findings.warn(inner.path, `is not a known option${suggestion(name, Object.keys(members))}`, at);
  }
  return result;
}

/**
 * Sets a member of a list or mapping. A value that could not be read (undefined) becomes a getter that throws
 * UnreadableValue.
 */
export function setValue(
  values: Record<string, unknown> | unknown[],
  name: string | number,
  value: unknown,
): void {
  const get = (): never => {
    throw new UnreadableValue();
  };
  const descriptor = value === undefined ? { get } : { value, writable: true };
  Object.defineProperty(values, name, { ...descriptor, enumerable: true, configurable: true });
}

function checkName(names: OptionSchema | undefined, name: string, context: ReadContext): void {
  if (names !== undefined) readScalar({ type: 'string', ...names }, scalarNode(name), context);
}

function memberContext(
  context: ReadContext,
  name: string,
  at: Position | undefined,
  schema: OptionSchema,
): ReadContext {
  return {
    findings: context.findings,
    path: childPath(context.path, name),
    at: at ?? context.at,
    secret: context.secret === true || schema['x-secret'] === true,
  };
}

function reportNotAllowed(schema: OptionSchema, node: SourceNode, context: ReadContext): undefined {
  const found = describeFound(schema, node, context.secret === true);
  const at = node.kind === 'scalar' ? (node.at ?? context.at) : context.at;
  context.findings.error(context.path, `found ${found}; allowed: ${describeAllowed(schema)}`, at);
}

function allowsNull(schema: OptionSchema): boolean {
  if (schema.anyOf) return schema.anyOf.some(allowsNull);
  return schema.enum ? schema.enum.includes(null) : [schema.type].flat().includes('null');
}

function isMapping(schema: OptionSchema): boolean {
  return [schema.type].flat().includes('object');
}
