/** A place in a source file; lines and columns count from 1. */
export interface Position {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/**
 * One thing that is wrong or noteworthy in a configuration. `at` is absent for what has no place in a
 * file: an environment variable, or an option that no file mentions. Texts never hold a secret's value.
 */
export interface Problem {
  readonly path: string;
  readonly message: string;
  readonly at?: Position;
}

/**
 * What was found while a configuration was read. Errors stop the start, warnings do not (`--strict`
 * turns them into errors), notices are remarks for the operator at start that never stop anything.
 */
export class Findings {
  readonly errors: Problem[] = [];
  readonly warnings: Problem[] = [];
  readonly notices: Problem[] = [];

  /** @param path of the option, empty for the document; `at` is where it stands in a file */
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

/** `homeserver.yaml:12:3: listeners[0].port: found …`, the form that editors and people can follow. */
export function formatProblem({ path, message, at }: Problem): string {
  const place = at === undefined ? '' : `${at.file}:${at.line}:${at.column}: `;
  return path === '' ? `${place}${message}` : `${place}${path}: ${message}`;
}

/** Orders problems as a reader of the files meets them; those without a place come last. */
export function inReadingOrder(problems: readonly Problem[], files: readonly string[]): readonly Problem[] {
  const key = ({ at }: Problem) => (at ? [files.indexOf(at.file), at.line, at.column] : [files.length, 0, 0]);
  return problems.toSorted((first, second) => {
    const [a, b] = [key(first), key(second)];
    const differing = a.findIndex((part, index) => part !== b[index]);
    return differing === -1 ? 0 : (a[differing] ?? 0) - (b[differing] ?? 0);
  });
}

/** Joins a dotted path with a name (`caches` + `global_factor`). */
export function childPath(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`;
}

function problem(path: string, message: string, at: Position | undefined): Problem {
  return at === undefined ? { path, message } : { path, message, at };
}
