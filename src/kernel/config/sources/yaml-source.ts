import {
  type Document,
  type ErrorCode,
  isAlias,
  isMap,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseAllDocuments,
} from 'yaml';
import { childPath, type Findings, type Position } from '../problems.ts';
import type { SourceEntry, SourceMap, SourceNode } from './source.ts';

/** Maximum number of nodes, against small files whose aliases expand into huge trees. */
const maxNodes = 100_000;

/**
 * Reads one YAML file into a tree with places. Reports an error and returns undefined when the text is not
 * valid YAML or not a mapping. An empty file is an empty mapping. Scalars follow YAML 1.2; boolean words of
 * YAML 1.1 are added by `readScalar`.
 */
export function parseYaml(file: string, text: string, findings: Findings): SourceMap | undefined {
  const lines = new LineCounter();
  const documents = parseAllDocuments(text, {
    lineCounter: lines,
    prettyErrors: false,
    uniqueKeys: false,
    merge: true,
  });
  const position = (offset: number): Position => {
    const { line, col } = lines.linePos(offset);
    return { file, line: Math.max(line, 1), column: Math.max(col, 1) };
  };
  const syntaxErrors = 'empty' in documents ? documents.errors : documents.flatMap(({ errors }) => errors);
  for (const error of syntaxErrors) findings.error('', syntaxMessage(error.code), position(error.pos[0]));
  const [document, second] = documents;
  if (document === undefined) return syntaxErrors.length > 0 ? undefined : emptyMap(position(0));
  for (const { code, pos } of document.warnings) findings.warn('', syntaxMessage(code), position(pos[0]));
  if (syntaxErrors.length > 0) return undefined;
  if (second !== undefined) {
    findings.error(
      '',
      'a configuration file must contain one YAML document, not several',
      position(second.range[0]),
    );
    return undefined;
  }
  return new TreeBuilder(document, position, findings).build();
}

class TreeBuilder {
  readonly #document: Document.Parsed;
  readonly #position: (offset: number) => Position;
  readonly #findings: Findings;
  readonly #ancestors = new Set<Node>();
  #nodeCount = 0;

  constructor(document: Document.Parsed, position: (offset: number) => Position, findings: Findings) {
    this.#document = document;
    this.#position = position;
    this.#findings = findings;
  }

  build(): SourceMap | undefined {
    const root = this.#document.contents as Node | null;
    if (root === null || (isScalar(root) && root.value === null)) return emptyMap(this.#position(0));
    const tree = this.#node(root, '');
    if (tree.kind === 'map') return tree;
    this.#findings.error('', 'a configuration file is a mapping of option names to values', this.#at(root));
    return undefined;
  }

  #node(node: Node | null, path: string): SourceNode {
    if (node === null) return { kind: 'scalar', value: null, text: '', plain: true };
    this.#nodeCount += 1;
    if (this.#nodeCount > maxNodes || this.#ancestors.has(node)) {
      const message = `this file has more than ${maxNodes} values when its aliases are expanded`;
      this.#findings.error(path, message, this.#at(node));
      return { kind: 'scalar', value: null, text: '', plain: true };
    }
    this.#ancestors.add(node);
    try {
      return this.#resolve(node, path);
    } finally {
      this.#ancestors.delete(node);
    }
  }

  #resolve(node: Node, path: string): SourceNode {
    const at = this.#at(node);
    if (isAlias(node)) {
      const target = node.resolve(this.#document);
      if (target === undefined) this.#findings.error(path, syntaxMessage('BAD_ALIAS'), at);
      return this.#node(target ?? null, path);
    }
    if (isSeq(node)) {
      const items = node.items.map((item, index) => this.#node(item as Node | null, `${path}[${index}]`));
      return { kind: 'list', items, at };
    }
    if (isMap(node)) return { kind: 'map', entries: this.#entries(node.items as Pair[], path), at };
    const value = isScalar(node) ? node.value : null;
    const source = isScalar(node) ? node.source : undefined;
    return {
      kind: 'scalar',
      value: isScalarValue(value) ? value : String(value),
      text: source ?? String(value),
      plain: isScalar(node) && node.type === 'PLAIN',
      at,
    };
  }

  #entries(pairs: readonly Pair[], path: string): Map<string, SourceEntry> {
    const entries = new Map<string, SourceEntry>();
    const inherited = new Map<string, SourceEntry>();
    for (const pair of pairs) {
      if (!isPair(pair) || !isScalar(pair.key)) {
        this.#findings.error(
          path,
          'the names in a mapping must be plain texts',
          this.#at(pair.key as Node | null),
        );
        continue;
      }
      const name = pair.key.source ?? String(pair.key.value);
      const at = this.#at(pair.key);
      const node = this.#node(pair.value as Node | null, name === '<<' ? path : childPath(path, name));
      if (name === '<<' && pair.key.type === 'PLAIN') mergeInto(inherited, node);
      else this.#add(entries, name, { node, at }, path);
    }
    // The names in the mapping itself override merged ones.
    return new Map([...inherited, ...entries]);
  }

  #add(entries: Map<string, SourceEntry>, name: string, entry: SourceEntry, path: string): void {
    if (name === '__proto__') {
      this.#findings.error(childPath(path, name), 'this name is not allowed', entry.at);
      return;
    }
    const earlier = entries.get(name);
    if (earlier !== undefined) {
      const line = earlier.at?.line;
      this.#findings.warn(
        childPath(path, name),
        `given twice; the value in line ${line} is not used`,
        entry.at,
      );
    }
    entries.set(name, entry);
  }

  #at(node: Node | null): Position | undefined {
    const offset = node?.range?.[0];
    return offset === undefined ? undefined : this.#position(offset);
  }
}

/**
 * Adds the members of the mapping (or list of mappings) that a merge key of YAML (`<<`) names. Earlier mappings
 * override later ones.
 */
function mergeInto(inherited: Map<string, SourceEntry>, node: SourceNode): void {
  for (const source of node.kind === 'list' ? node.items : [node]) {
    if (source.kind !== 'map') continue;
    for (const [name, entry] of source.entries) if (!inherited.has(name)) inherited.set(name, entry);
  }
}

function emptyMap(at: Position): SourceMap {
  return { kind: 'map', entries: new Map(), at };
}

function isScalarValue(value: unknown): value is string | number | boolean | null {
  return value === null || ['string', 'number', 'boolean'].includes(typeof value);
}

/** Replaces the messages of the parser, which may quote the file, secrets included. */
function syntaxMessage(code: ErrorCode): string {
  return `not valid YAML: ${syntaxMessages[code] ?? 'syntax error'}`;
}

const syntaxMessages: Partial<Record<ErrorCode, string>> = {
  ALIAS_PROPS: 'an alias cannot have an anchor or a tag',
  BAD_ALIAS: 'an alias (*name) without its anchor; quote a value that begins with an asterisk',
  BAD_COLLECTION_TYPE: 'the tag does not fit a list or a mapping',
  BAD_DIRECTIVE: 'unknown directive',
  BAD_DQ_ESCAPE: 'an unknown escape in double quotes; use single quotes to keep backslashes',
  BAD_INDENT: 'wrong indentation',
  BAD_PROP_ORDER: 'anchors and tags must come before the value',
  BAD_SCALAR_START: 'a value that begins with a reserved character must be quoted',
  BLOCK_AS_IMPLICIT_KEY: 'a nested mapping or list must begin on its own line',
  BLOCK_IN_FLOW: 'an indented list or mapping cannot stand inside brackets',
  KEY_OVER_1024_CHARS: 'a name is longer than 1024 characters',
  MISSING_CHAR: 'a quote, bracket, colon, comma or similar character is missing',
  MULTILINE_IMPLICIT_KEY: 'a name may not span several lines; perhaps a colon is missing',
  MULTIPLE_ANCHORS: 'a value has more than one anchor',
  MULTIPLE_DOCS: 'more than one document in the file',
  MULTIPLE_TAGS: 'a value has more than one tag',
  RESOURCE_EXHAUSTION: 'the file is nested too deeply',
  TAB_AS_INDENT: 'tabs cannot be used for indentation',
  TAG_RESOLVE_FAILED: 'unknown tag',
  UNEXPECTED_TOKEN: 'unexpected token',
};
