import { isJsonObject, type JsonObject, type JsonValue } from '../protocol/index.ts';

/** Returns an event with only some of its fields, without changing the original. */
export type FieldSelection = (event: JsonObject) => JsonObject;

/** Maps the names of fields to the selected part of each field: all of it, or some of its members. */
type Tree = Map<string, Tree | 'all'>;

/**
 * Compiles the filter's `event_fields`.
 * Source: client-server API, "Filtering"; appendices, "Dot-separated property paths".
 */
export function compileFields(paths: readonly string[]): FieldSelection {
  const tree: Tree = new Map();
  for (const path of paths) add(tree, splitPath(path));
  return (event) => select(event, tree);
}

/** Splits a path at dots; `\.` and `\\` stand for a dot and a backslash. */
export function splitPath(path: string): string[] {
  const names: string[] = [];
  let name = '';
  for (const [piece] of path.matchAll(/\\[.\\]|./gs)) {
    if (piece === '.') {
      names.push(name);
      name = '';
    } else {
      name += piece.length === 2 ? piece.slice(1) : piece;
    }
  }
  return [...names, name];
}

function add(tree: Tree, names: readonly string[]): void {
  let level = tree;
  for (const [i, name] of names.entries()) {
    const known = level.get(name);
    if (known === 'all') return;
    if (i === names.length - 1) {
      level.set(name, 'all');
    } else if (known) {
      level = known;
    } else {
      const next: Tree = new Map();
      level.set(name, next);
      level = next;
    }
  }
}

/** Returns the selected part of an object. It has no prototype, so that `__proto__` is an ordinary member. */
function select(object: JsonObject, tree: Tree): JsonObject {
  const selected: Record<string, JsonValue> = Object.create(null);
  for (const [name, below] of tree) {
    const value = Object.hasOwn(object, name) ? object[name] : undefined;
    if (value === undefined) continue;
    if (below === 'all') {
      selected[name] = value;
    } else if (isJsonObject(value)) {
      const inner = select(value, below);
      if (Object.keys(inner).length > 0) selected[name] = inner;
    }
  }
  return selected;
}
