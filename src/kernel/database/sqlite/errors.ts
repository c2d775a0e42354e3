import { DatabaseError, isDiskFull, UniqueViolation } from '../errors.ts';

/** An error in the form that worker threads send. */
export interface PlainError {
  readonly message: string;
  /** SQLite's extended result code; absent for errors of the program. */
  readonly code?: number;
}

/** SQLITE_CONSTRAINT_PRIMARYKEY, SQLITE_CONSTRAINT_UNIQUE and SQLITE_CONSTRAINT_ROWID. */
const uniqueCodes = [1555, 2067, 2579];

/** Converts an error into the form that can be sent to another thread. */
export function plainError(error: unknown): PlainError {
  if (!(error instanceof Error)) return { message: String(error) };
  const code = 'errcode' in error && typeof error.errcode === 'number' ? error.errcode : undefined;
  return code === undefined ? { message: error.message } : { message: error.message, code };
}

/** Converts an error from another thread back into an error, where possible into a class of `../errors.ts`. */
export function typedError({ message, code }: PlainError): Error {
  if (code === undefined) return new Error(message);
  if (!uniqueCodes.includes(code)) return new DatabaseError(message, String(code));
  const table = /failed: ([^.,]+)/.exec(message)?.[1] ?? 'unknown';
  return new UniqueViolation(table, String(code));
}

/** Describes why a file cannot be used, for the operator who starts the server. */
export function startProblem(error: unknown): string {
  const { message } = plainError(error);
  return isDiskFull(typedError(plainError(error))) ? `its disk is full (${message})` : message;
}
