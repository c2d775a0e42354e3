import type { Findings, Position } from './problems.ts';
import type { SourceMap, SourceNode } from './sources/source.ts';

/** Reports conflicts between options. Each of the options is valid by itself. */
export type Rule<Values> = (values: Values, view: RuleView) => void;

/**
 * A rule accessed a value that could not be read. The mistake has been reported already, so the rule is
 * skipped.
 */
export class UnreadableValue extends Error {
  override readonly name = 'UnreadableValue';
}

/** Shows rules which options the document contains, and adds their reports to the findings. */
export class RuleView {
  readonly #document: SourceMap;
  readonly #findings: Findings;

  constructor(document: SourceMap, findings: Findings) {
    this.#document = document;
    this.#findings = findings;
  }

  /** Runs a rule; skips it when it accesses a value that could not be read. */
  tryRule(rule: () => void): void {
    try {
      rule();
    } catch (error) {
      if (!(error instanceof UnreadableValue)) throw error;
    }
  }

  /** Whether the document contains this option (`email.notif_from`, `listeners[0].path`), even as null. */
  isGiven(path: string): boolean {
    return this.#find(path) !== undefined;
  }

  /**
   * Reports an error at the place of the option, or of the nearest mapping around it.
   * @param cause path of the option that requires `path`; its place is reported where no file contains `path` or a
   * mapping around it
   */
  error(path: string, message: string, cause: string = path): void {
    this.#findings.error(path, message, this.#placeOf(path) ?? this.#placeOf(cause));
  }

  /** Reports a warning, at the same place as `error`. */
  warn(path: string, message: string): void {
    this.#findings.warn(path, message, this.#placeOf(path));
  }

  /** Reports a notice, at the same place as `error`. */
  notice(path: string, message: string): void {
    this.#findings.notice(path, message, this.#placeOf(path));
  }

  #placeOf(path: string): Position | undefined {
    const steps = stepsOf(path);
    for (let length = steps.length; length > 0; length--) {
      const found = findPlace(this.#document, steps.slice(0, length));
      if (found !== undefined) return found.at;
    }
    return undefined;
  }

  #find(path: string): { node: SourceNode } | undefined {
    return findPlace(this.#document, stepsOf(path));
  }
}

/** Splits `listeners[0].path` into `['listeners', 0, 'path']`. */
function stepsOf(path: string): (string | number)[] {
  return path.split('.').flatMap((step) => {
    const [name = '', ...indexes] = step.split('[');
    return [name, ...indexes.map((index) => Number.parseInt(index, 10))];
  });
}

function findPlace(
  root: SourceMap,
  steps: readonly (string | number)[],
): { node: SourceNode; at: Position | undefined } | undefined {
  let node: SourceNode | undefined = root;
  let at: Position | undefined;
  for (const step of steps) {
    if (node?.kind === 'map') {
      const entry = node.entries.get(String(step));
      node = entry?.node;
      at = entry?.at;
    } else if (node?.kind === 'list' && typeof step === 'number') {
      node = node.items[step];
      at = node?.at ?? at;
    } else return undefined;
  }
  return node && { node, at };
}
