import { isScalar } from './scalar-schemas.ts';

/** The keywords of a schema that matter for sizes. */
interface SizedSchema {
  readonly maxLength?: number;
  readonly maxItems?: number;
  readonly maxProperties?: number;
  readonly items?: unknown;
  readonly properties?: Readonly<Record<string, unknown>>;
  readonly patternProperties?: Readonly<Record<string, unknown>>;
  readonly additionalProperties?: unknown;
  readonly anyOf?: readonly unknown[];
}

/** A string, list or map with more characters, items or members than its schema allows. */
export interface Excess {
  /** Names of members and indexes of items that lead to the string, list or map. */
  readonly path: readonly string[];
  /** The message for the sender: `must not have more than 3 items`. */
  readonly text: string;
}

/** Returns the first excess in a value. Does not check the entries of a list or map that has too many entries. */
export type FindExcess = (value: unknown) => Excess | undefined;

/**
 * Returns a check of the sizes in a schema, or `undefined` if it has no bounds. A validator checks all entries of a
 * list or map before it counts them, so this check must come first: a request can have a million entries.
 */
export function sizeCheck(schema: unknown): FindExcess | undefined {
  if (!isObject(schema)) return undefined;
  const { maxLength, maxItems, maxProperties, anyOf } = schema as SizedSchema;
  const checks: FindExcess[] = [];
  // A character has one or two code units. A string within twice the bound is left to the validator, which counts.
  if (maxLength !== undefined)
    checks.push((value) =>
      typeof value === 'string' && value.length > 2 * maxLength ? excess(maxLength, 'characters') : undefined,
    );
  if (maxItems !== undefined)
    checks.push((value) =>
      Array.isArray(value) && value.length > maxItems ? excess(maxItems, 'items') : undefined,
    );
  if (maxProperties !== undefined)
    checks.push((value) =>
      isObject(value) && Object.keys(value).length > maxProperties
        ? excess(maxProperties, 'members')
        : undefined,
    );
  for (const check of [
    itemCheck(schema),
    memberCheck(schema),
    entryCheck(schema),
    anyOf && unionCheck(anyOf),
  ])
    if (check) checks.push(check);
  return checks.length === 0 ? undefined : (value) => firstExcess(checks, (check) => check(value));
}

const excess = (max: number, unit: string): Excess => ({
  path: [],
  text: `must not have more than ${max} ${unit}`,
});

/** Returns a check of the items of a list. */
function itemCheck({ items }: SizedSchema): FindExcess | undefined {
  const check = sizeCheck(items);
  return (
    check &&
    ((value) => (Array.isArray(value) ? firstExcess(value.keys(), excessAt(value, check)) : undefined))
  );
}

/** Returns a check of the members of an object that its schema names. */
function memberCheck({ properties = {} }: SizedSchema): FindExcess | undefined {
  const checks = Object.entries(properties)
    .map(([name, schema]) => [name, sizeCheck(schema)] as const)
    .filter((entry): entry is readonly [string, FindExcess] => entry[1] !== undefined);
  if (checks.length === 0) return undefined;
  return (value) =>
    isObject(value)
      ? firstExcess(checks, ([name, check]) =>
          Object.hasOwn(value, name) ? excessAt(value, check)(name) : undefined,
        )
      : undefined;
}

/** Returns a check of the values of a map, whose members may have any names. */
function entryCheck({
  patternProperties,
  additionalProperties,
  properties,
}: SizedSchema): FindExcess | undefined {
  const schemas = [...Object.values(patternProperties ?? {}), additionalProperties];
  const check = schemas.map(sizeCheck).find((sizes) => sizes !== undefined);
  if (check === undefined || properties !== undefined) return undefined;
  return (value) =>
    isObject(value) && !Array.isArray(value)
      ? firstExcess(Object.keys(value), excessAt(value, check))
      : undefined;
}

/**
 * Returns a check of a union, which finds an excess only if every schema of the union finds one. Schemas that accept
 * nothing with a size are ignored.
 */
function unionCheck(schemas: readonly unknown[]): FindExcess | undefined {
  const sized = schemas.filter((schema) => !isScalar(schema));
  const checks = sized.map(sizeCheck).filter((check) => check !== undefined);
  if (checks.length < sized.length || checks.length === 0) return undefined;
  return (value) => {
    const found = checks.map((check) => check(value));
    return found.every((each) => each !== undefined) ? found[0] : undefined;
  };
}

/** Returns a function that finds an excess in the member or item of `value` with a given name or index. */
const excessAt =
  (value: object, check: FindExcess) =>
  (key: string | number): Excess | undefined => {
    const found = check((value as Record<string, unknown>)[key]);
    return found && { ...found, path: [String(key), ...found.path] };
  };

function firstExcess<T>(parts: Iterable<T>, find: (part: T) => Excess | undefined): Excess | undefined {
  for (const part of parts) {
    const found = find(part);
    if (found !== undefined) return found;
  }
  return undefined;
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;
