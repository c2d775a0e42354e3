/** A node of a heap snapshot, by its index. */
export type HeapNode = number;

/** An edge of a heap snapshot, by its index. */
export type HeapEdge = number;

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

/** Positions of fields in a node, whose fields are: type, name, id, bytes, number of edges. */
const nodeField = { type: 0, name: 1, bytes: 3, edgeCount: 4 };

/** Number of fields of an edge: type, name or index, node. */
const edgeFields = 3;

/** Reads the heap snapshots that V8 writes (`v8.getHeapSnapshot`, `--heapsnapshot-signal`). */
export class HeapGraph {
  readonly #snapshot: Snapshot;
  /** Number of fields of a node. */
  readonly #fields: number;
  /** The index of the first edge of each node, and at the end the number of edges. */
  readonly #firstEdges: Uint32Array;

  /** @throws SyntaxError when the text is not complete */
  constructor(text: string) {
    this.#snapshot = JSON.parse(text) as Snapshot;
    const { snapshot, nodes } = this.#snapshot;
    this.#fields = snapshot.meta.node_fields.length;
    this.#firstEdges = new Uint32Array(snapshot.node_count + 1);
    for (let node = 0; node < snapshot.node_count; node++) {
      this.#firstEdges[node + 1] =
        this.#firstEdges[node]! + nodes[node * this.#fields + nodeField.edgeCount]!;
    }
  }

  /** Number of nodes; the first one is the root. */
  get size(): number {
    return this.#snapshot.snapshot.node_count;
  }

  /** The kind of a node, for instance `object` or `closure`. */
  typeOf(node: HeapNode): string {
    const { snapshot, nodes } = this.#snapshot;
    return snapshot.meta.node_types[0][nodes[node * this.#fields + nodeField.type]!]!;
  }

  /** The name of the class of an object, or what V8 calls the node. */
  nameOf(node: HeapNode): string {
    return this.#snapshot.strings[this.#snapshot.nodes[node * this.#fields + nodeField.name]!]!;
  }

  /** Bytes of the node itself. */
  bytesOf(node: HeapNode): number {
    return this.#snapshot.nodes[node * this.#fields + nodeField.bytes]!;
  }

  /** The index of the first edge of a node. The edges of the following node begin after its last edge. */
  firstEdgeOf(node: HeapNode): HeapEdge {
    return this.#firstEdges[node]!;
  }

  /** The node that an edge leads from. */
  sourceOf(edge: HeapEdge): HeapNode {
    let [low, high] = [0, this.size];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.#firstEdges[middle]! <= edge) low = middle;
      else high = middle;
    }
    return low;
  }

  /** The node that an edge leads to. */
  targetOf(edge: HeapEdge): HeapNode {
    return this.#snapshot.edges[edge * edgeFields + 2]! / this.#fields;
  }

  /** The kind of an edge, for instance `property` or `weak`. */
  edgeTypeOf(edge: HeapEdge): string {
    return this.#snapshot.snapshot.meta.edge_types[0][this.#snapshot.edges[edge * edgeFields]!]!;
  }

  /** The name of the property, or the index of the element. */
  edgeNameOf(edge: HeapEdge): string {
    const { edges, strings } = this.#snapshot;
    const type = this.edgeTypeOf(edge);
    const name = edges[edge * edgeFields + 1]!;
    return type === 'element' || type === 'hidden' ? String(name) : strings[name]!;
  }

  /** Returns the node that an edge of this name leads to. */
  follow(node: HeapNode, name: string): HeapNode | undefined {
    for (let edge = this.firstEdgeOf(node); edge < this.firstEdgeOf(node + 1); edge++) {
      if (this.edgeNameOf(edge) === name) return this.targetOf(edge);
    }
    return undefined;
  }
}
