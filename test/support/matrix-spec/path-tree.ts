/** Path templates as a tree of segments, so that a path need not be compared with each template. */
export class PathTree<Value> {
  readonly #root: Node<Value> = newNode();

  /** Adds a value under a template like `/rooms/{roomId}/state` and a method. */
  add(template: string, method: string, value: Value): void {
    let node = this.#root;
    for (const segment of template.split('/')) {
      if (segment.startsWith('{')) {
        node.parameter ??= newNode();
        // Only state keys may be empty: `/pushrules/global/override/` is a list, not the rule with an empty id.
        node.mayBeEmpty ||= segment === '{stateKey}';
        node = node.parameter;
      } else {
        const next = node.literals.get(segment) ?? newNode();
        node.literals.set(segment, next);
        node = next;
      }
    }
    node.values.set(method, value);
  }

  /** Returns the value for a path and a method. Where several templates fit, literal segments precede parameters. */
  find(path: string, method: string): Value | undefined {
    return findIn(this.#root, path.split('/'), 0, method);
  }
}

interface Node<Value> {
  /** The next nodes by literal segment. */
  readonly literals: Map<string, Node<Value>>;
  /** The values of templates that end at this node, by method. */
  readonly values: Map<string, Value>;
  parameter: Node<Value> | undefined;
  /** Whether the parameter may be an empty segment. */
  mayBeEmpty: boolean;
}

const newNode = <Value>(): Node<Value> => ({
  literals: new Map(),
  values: new Map(),
  parameter: undefined,
  mayBeEmpty: false,
});

function findIn<Value>(
  node: Node<Value>,
  segments: readonly string[],
  depth: number,
  method: string,
): Value | undefined {
  const segment = segments[depth];
  if (segment === undefined) return node.values.get(method);
  const literal = node.literals.get(segment);
  return (
    (literal && findIn(literal, segments, depth + 1, method)) ??
    (node.parameter && (segment !== '' || node.mayBeEmpty)
      ? findIn(node.parameter, segments, depth + 1, method)
      : undefined)
  );
}
