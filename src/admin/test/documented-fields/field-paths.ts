/** Paths of fields, such as `rooms[].name`, and whether each of them is always present. */
export type FieldPaths = ReadonlyMap<string, boolean>;

/**
 * Reads a list of fields in the notation of `DocumentedEndpoint`, such as `rooms[](room_id name?) next_token?`.
 * @throws Error when a part of it is not understood
 */
export function pathsOfNotation(fields: string): FieldPaths {
  const paths = new Map<string, boolean>();
  /** The fields whose parentheses are open. */
  const parents: string[] = [];
  let last = '';
  for (const [part] of fields.matchAll(/[^\s()]+|[()]/g)) {
    if (part === '(') parents.push(last);
    else if (part === ')') {
      if (parents.pop() === undefined) throw new Error(`There are too many ")" in "${fields}"`);
    } else {
      const [, name] = /^([\w.]*(?:\[\]|\{\})*)\??$/.exec(part) ?? [];
      if (!name) throw new Error(`"${part}" is not a field`);
      last = pathBelow(parents.at(-1), name);
      paths.set(last, !part.endsWith('?'));
    }
  }
  if (parents.length > 0) throw new Error(`A ")" is missing in "${fields}"`);
  return paths;
}

/** The keywords of a JSON schema that tell which fields a value has. */
export interface FieldSchema {
  readonly type?: string;
  readonly anyOf?: readonly FieldSchema[];
  readonly items?: FieldSchema;
  readonly properties?: Readonly<Record<string, FieldSchema>>;
  readonly required?: readonly string[];
  readonly patternProperties?: Readonly<Record<string, FieldSchema>>;
  readonly additionalProperties?: boolean;
}

/** Returns the paths of all fields that a schema names. */
export function pathsOfSchema(schema: FieldSchema): FieldPaths {
  const paths = new Map<string, boolean>();
  const { kind, object } = containerOf(schema);
  if (kind !== '') paths.set(kind, true);
  addFields(paths, kind, object);
  return paths;
}

/** Adds the fields of an object, whose own path is `parent`. */
function addFields(paths: Map<string, boolean>, parent: string, schema: FieldSchema): void {
  for (const [name, value] of Object.entries(schema.properties ?? {})) {
    const { kind, object } = containerOf(value);
    const path = pathBelow(parent, `${name}${kind}`);
    paths.set(path, schema.required?.includes(name) ?? false);
    addFields(paths, path, object);
  }
}

/**
 * Returns the `kind` of a value: `[]` for a list, `{}` for an object with any names, and empty for other values. `object`
 * is the schema of the entries of the list or of the object with any names, or else the schema of the value itself.
 */
function containerOf(schema: FieldSchema): { readonly kind: string; readonly object: FieldSchema } {
  const value = schema.anyOf?.find(({ type }) => type === 'object' || type === 'array') ?? schema;
  if (value.items !== undefined) return { kind: '[]', object: containerOf(value.items).object };
  const isFixed = Object.keys(value.properties ?? {}).length > 0 || value.additionalProperties === false;
  if (value.type !== 'object' || isFixed) return { kind: '', object: value };
  const [member] = Object.values(value.patternProperties ?? {});
  return { kind: '{}', object: member === undefined ? {} : containerOf(member).object };
}

const pathBelow = (parent: string | undefined, name: string): string => (parent ? `${parent}.${name}` : name);
