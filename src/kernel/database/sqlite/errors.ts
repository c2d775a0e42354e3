import { DatabaseError, UniqueViolation } from '../errors.ts';

/** An error in the shape in which it crosses from a worker thread. */
export interface PlainError {
  readonly message: string;
  /** SQLite's extended result code; none for errors of the program. */
  readonly code?: number;
}

/** SQLITE_CONSTRAINT_PRIMARYKEY, SQLITE_CONSTRAINT_UNIQUE and SQLITE_CONSTRAINT_ROWID. */
const uniqueCodes = [1555, 2067, 2579];

/** Takes from an error what can be sent to another thread. */
export function plainError(error: unknown): PlainError {
  if (!(error instanceof Error)) return { message: String(error) };
  const code = 'errcode' in error && typeof error.errcode === 'number' ? error.errcode : undefined;
  return code === undefined ? { message: error.message } : { message: error.message, code };
}

/** The error of `errors.ts` that says the same. */
export function typedError({ message, code }: PlainError): Error {
  if (code === undefined) return new Error(message);
  if (!uniqueCodes.includes(code)) return new DatabaseError(message, String(code));
  const table = /failed: ([^.,]+)/.exec(message)?.[1] ?? 'unknown';
  return new UniqueViolation(table, String(code));
}
