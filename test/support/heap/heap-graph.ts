/** A node of a heap snapshot, by its index. */
export type HeapNode = number;

export interface Edge {
  readonly type: string;
  /** Name of the property, or index of the element. */
  readonly name: string;
  readonly from: HeapNode;
  readonly to: HeapNode;
}

interface Snapshot {
  readonly snapshot: {
    readonly meta: {
      readonly node_fields: readonly string[];
      readonly node_types: readonly [readonly string[], ...unknown[]];
      readonly edge_types: readonly [readonly string[], ...unknown[]];
    };
    readonly node_count: number;
  };
  readonly nodes: readonly number[];
  readonly edges: readonly number[];
  readonly strings: readonly string[];
}

/** Number of fields of an edge: type, name or index, node. */
const edgeFields = 3;

/** Reads the heap snapshots that V8 writes (`v8.getHeapSnapshot`, `--heapsnapshot-signal`). */
export class HeapGraph {
  readonly #snapshot: Snapshot;
  readonly #fields: number;
  readonly #firstEdges: Uint32Array;

  /** @throws SyntaxError when the text is not complete */
  constructor(text: string) {
    this.#snapshot = JSON.parse(text) as Snapshot;
    const { snapshot, nodes } = this.#snapshot;
    this.#fields = snapshot.meta.node_fields.length;
    this.#firstEdges = new Uint32Array(snapshot.node_count + 1);
    for (let node = 0; node < snapshot.node_count; node++) {
      this.#firstEdges[node + 1] = this.#firstEdges[node]! + nodes[node * this.#fields + 4]!;
    }
  }

  /** Number of nodes; the first one is the root. */
  get size(): number {
    return this.#snapshot.snapshot.node_count;
  }

  typeOf(node: HeapNode): string {
    return this.#snapshot.snapshot.meta.node_types[0][this.#snapshot.nodes[node * this.#fields]!]!;
  }

  /** The name of the class of an object, or what V8 calls the node. */
  nameOf(node: HeapNode): string {
    return this.#snapshot.strings[this.#snapshot.nodes[node * this.#fields + 1]!]!;
  }

  /** Bytes of the node itself. */
  bytesOf(node: HeapNode): number {
    return this.#snapshot.nodes[node * this.#fields + 3]!;
  }

  *edgesOf(node: HeapNode): Generator<Edge> {
    const { edges, strings, snapshot } = this.#snapshot;
    for (let edge = this.#firstEdges[node]!; edge < this.#firstEdges[node + 1]!; edge++) {
      const at = edge * edgeFields;
      const type = snapshot.meta.edge_types[0][edges[at]!]!;
      const isNumbered = type === 'element' || type === 'hidden';
      const name = isNumbered ? String(edges[at + 1]) : strings[edges[at + 1]!]!;
      yield { type, name, from: node, to: edges[at + 2]! / this.#fields };
    }
  }

  /** Returns the node to which an edge of this name leads. */
  follow(node: HeapNode, name: string): HeapNode | undefined {
    for (const edge of this.edgesOf(node)) if (edge.name === name) return edge.to;
    return undefined;
  }
}
