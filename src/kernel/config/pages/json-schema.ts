import { type OptionSchema, schemaOf } from '../option.ts';
import { type AnySection, sectionOptions } from '../section.ts';
import { notesOf } from './type-words.ts';

type JsonSchema = Record<string, unknown>;

/**
 * Returns the JSON Schema (draft 2020-12) of the whole document, with standard keywords only and without references.
 * Every option has a description and a member `default`, which is null where the option is required or has no default.
 * Old names of options, and the names that options have in other servers, are not included.
 */
export function jsonSchema(sections: Readonly<Record<string, AnySection>>, title: string): JsonSchema {
  const options = Object.values(sections).flatMap((section) => Object.entries(sectionOptions(section)));
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title,
    description: 'The options of the configuration. A document may be spread over several files.',
    type: 'object',
    properties: Object.fromEntries(options.map(([name, schema]) => [name, optionSchema(schema)])),
    additionalProperties: false,
  };
}

/** Returns the default of an option as written in a file; mappings take theirs from their members. */
export function writtenDefault(schema: OptionSchema): unknown {
  if (schema['x-required']) return null;
  if (schema.default !== undefined) return schema.default;
  if (![schema.type].flat().includes('object')) return null;
  const members = Object.entries(schema.properties ?? {}).filter(([, member]) => !member['x-required']);
  return Object.fromEntries(members.map(([name, member]) => [name, writtenDefault(member)]));
}

function optionSchema(schema: OptionSchema): JsonSchema {
  const description = [schema.description, ...notesOf(schema)].join('\n\n');
  return {
    description,
    ...typeSchema(schema),
    default: writtenDefault(schema),
    ...(schema.deprecated && { deprecated: true }),
    ...(schema['x-secret'] && { writeOnly: true }),
  };
}

function typeSchema(schema: OptionSchema): JsonSchema {
  const { items, properties, additionalProperties: others, propertyNames, anyOf } = schema;
  const required = Object.entries(properties ?? {}).flatMap(([name, member]) =>
    member['x-required'] ? [name] : [],
  );
  return {
    ...(schema.type !== undefined && { type: schema.type }),
    ...(schema.enum && { type: schema.type ?? typesOf(schema.enum), enum: schema.enum }),
    ...constraints(schema),
    ...(anyOf && { anyOf: anyOf.map(typeSchema) }),
    ...(items && { items: typeSchema(items) }),
    ...(properties && { properties: mapMembers(properties) }),
    ...(required.length > 0 && { required }),
    ...(others !== undefined && {
      additionalProperties: typeof others === 'object' ? typeSchema(others) : others,
    }),
    ...(propertyNames && { propertyNames: constraints(propertyNames) }),
  };
}

function mapMembers(members: Readonly<Record<string, OptionSchema>>): JsonSchema {
  return Object.fromEntries(
    Object.entries(members).map(([name, member]) => [name, optionSchema(schemaOf(member))]),
  );
}

const constraintKeywords = [
  'minimum',
  'exclusiveMinimum',
  'maximum',
  'minLength',
  'pattern',
  'minItems',
  'maxItems',
] as const;

function constraints(schema: OptionSchema): JsonSchema {
  const given = constraintKeywords.filter((keyword) => schema[keyword] !== undefined);
  return Object.fromEntries(given.map((keyword) => [keyword, schema[keyword]]));
}

function typesOf(values: readonly unknown[]): string | string[] {
  const types = [...new Set(values.map((value) => (value === null ? 'null' : typeof value)))];
  return types.length === 1 && types[0] !== undefined ? types[0] : types;
}
