/** The part of a JSON schema that determines which members may be absent. */
interface JsonSchema {
  readonly type?: string;
  readonly const?: unknown;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly items?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
  readonly allOf?: readonly JsonSchema[];
}

/**
 * Returns a value without members that are null, if the schema makes them optional and does not allow null. Clients in
 * many languages write null for a value that is not set.
 */
export function withoutNullMembers(schema: object, value: unknown): unknown {
  return clean(schema, value);
}

function clean(schema: JsonSchema, value: unknown): unknown {
  if (Array.isArray(value)) {
    const { items } = schema;
    return items ? value.map((item) => clean(items, item)) : value;
  }
  const { properties, required = [] } = schema;
  if (properties === undefined || typeof value !== 'object' || value === null) return value;
  const isAbsent = ([name, member]: [string, unknown]) => {
    const known = Object.hasOwn(properties, name) ? properties[name] : undefined;
    return member === null && known !== undefined && !required.includes(name) && !acceptsNull(known);
  };
  const members = Object.entries(value).filter((entry) => !isAbsent(entry));
  return Object.fromEntries(
    members.map(([name, member]) => {
      const known = Object.hasOwn(properties, name) ? properties[name] : undefined;
      return [name, known ? clean(known, member) : member];
    }),
  );
}

function acceptsNull({ type, anyOf, allOf, ...schema }: JsonSchema): boolean {
  if (anyOf) return anyOf.some(acceptsNull);
  if (allOf) return allOf.every(acceptsNull);
  if (type === undefined) return !('const' in schema) || schema.const === null;
  return type === 'null';
}
