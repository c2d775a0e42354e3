import { isJsonObject, type JsonObject, type JsonValue } from '../json.ts';

/** The names of nested properties, outermost first. */
export type PropertyPath = readonly string[];

/**
 * Parses a path like `content.m\.relates_to.rel_type`. A backslash that escapes neither a dot nor a backslash
 * stands for itself.
 * Source: appendices, "Dot-separated property paths".
 */
export function parsePropertyPath(path: string): PropertyPath {
  const names: string[] = [];
  let name = '';
  for (let i = 0; i < path.length; i++) {
    const character = path[i]!;
    const next = path[i + 1];
    if (character === '.') {
      names.push(name);
      name = '';
    } else if (character === '\\' && (next === '.' || next === '\\')) {
      name += next;
      i++;
    } else {
      name += character;
    }
  }
  return [...names, name];
}

/** Returns the property at a path; `undefined` if there is none. Arrays have no properties. */
export function propertyAt(object: JsonObject, path: PropertyPath): JsonValue | undefined {
  let value: JsonValue | undefined = object;
  for (const name of path) {
    if (!isJsonObject(value) || !Object.hasOwn(value, name)) return undefined;
    value = value[name];
  }
  return value;
}
