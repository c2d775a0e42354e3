/** A place in a source file; lines and columns start at 1. */
export interface Position {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/**
 * An error or remark about a configuration. `at` is absent without a place in a file: for an environment
 * variable, or an option that no file contains. Messages never contain the value of a secret.
 */
export interface Problem {
  readonly path: string;
  readonly message: string;
  readonly at?: Position;
}

/**
 * Collects problems while a configuration is read. Errors stop the start. Warnings do not (`--strict` turns
 * them into errors). Notices are remarks for the operator and never stop the start.
 */
export class Findings {
  readonly errors: Problem[] = [];
  readonly warnings: Problem[] = [];
  readonly notices: Problem[] = [];

  /**
   * @param path of the option, empty for the document
   * @param at its place in a file
   */
  error(path: string, message: string, at?: Position): void {
    this.errors.push(problem(path, message, at));
  }

  warn(path: string, message: string, at?: Position): void {
    this.warnings.push(problem(path, message, at));
  }

  notice(path: string, message: string, at?: Position): void {
    this.notices.push(problem(path, message, at));
  }
}

/** Formats a problem as editors understand it: `homeserver.yaml:12:3: listeners[0].port: found …`. */
export function formatProblem({ path, message, at }: Problem): string {
  const place = at === undefined ? '' : `${at.file}:${at.line}:${at.column}: `;
  return path === '' ? `${place}${message}` : `${place}${path}: ${message}`;
}

/** Sorts problems by file, line and column; problems without a place come last. */
export function inReadingOrder(problems: readonly Problem[], files: readonly string[]): readonly Problem[] {
  const key = ({ at }: Problem) => (at ? [files.indexOf(at.file), at.line, at.column] : [files.length, 0, 0]);
  return problems.toSorted((first, second) => {
    const [a, b] = [key(first), key(second)];
    const differing = a.findIndex((part, index) => part !== b[index]);
    return differing === -1 ? 0 : (a[differing] ?? 0) - (b[differing] ?? 0);
  });
}

/** Appends a name to a dotted path (`caches` + `global_factor`). */
export function childPath(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`;
}

function problem(path: string, message: string, at: Position | undefined): Problem {
  return at === undefined ? { path, message } : { path, message, at };
}
