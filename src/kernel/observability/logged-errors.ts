/** A log entry at the level `error` or `fatal` that has an error. */
export interface LoggedError {
  readonly level: 'error' | 'fatal';
  /** Whether the process exits as soon as the entry is logged (field `exits`), so that nothing can be sent later. */
  readonly exits: boolean;
  readonly error: Error;
  readonly message: string;
  /**
   * The names of the logger, job, route and method (`logger`, `job`, `route`, `method`) of the entry. Other
   * fields are left out.
   */
  readonly fields: Readonly<Record<string, string>>;
}

/** Fields of log entries that are passed on, because they name code and never users, rooms or content. */
const passedFields = ['logger', 'job', 'route', 'method'] as const;

/** The level of pino from which errors are passed on. */
export const errorLevel = 50;

const fatalLevel = 60;

/** Passes the errors of log entries on to listeners. */
export class LoggedErrors {
  readonly #listeners = new Set<(logged: LoggedError) => void>();

  /** Calls `listener` for each logged error. @returns a function that removes the listener */
  subscribe(listener: (logged: LoggedError) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /**
   * Passes on a log entry, if it has an error.
   * @param level number of the level in pino, at least `errorLevel`
   * @param bindings fields that all entries of the logger have
   * @param entry the arguments with which the logger was called: fields and the message
   */
  logged(level: number, bindings: object, [fields, message]: readonly unknown[]): void {
    if (this.#listeners.size === 0) return;
    if (typeof fields !== 'object' || fields === null) return;
    const { err, exits } = fields as { err?: unknown; exits?: unknown };
    if (!(err instanceof Error)) return;
    const all: Readonly<Record<string, unknown>> = { ...bindings, ...fields };
    const passed = passedFields.flatMap((name) =>
      typeof all[name] === 'string' ? [[name, all[name]] as const] : [],
    );
    for (const listener of this.#listeners) {
      listener({
        level: level >= fatalLevel ? 'fatal' : 'error',
        exits: exits === true,
        error: err,
        message: String(message ?? ''),
        fields: Object.fromEntries(passed),
      });
    }
  }
}
