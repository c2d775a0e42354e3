import { StartFailure } from '../kernel/start-failure.ts';

/** A problem that the operator at the terminal can solve. Only its message is printed. */
export class CommandFailure extends Error {
  override readonly name = 'CommandFailure';
}

/** Whether the message suffices without a stack trace: system errors name the file or the address. */
function isSelfExplanatory(error: Error): boolean {
  return error instanceof CommandFailure || error instanceof StartFailure || 'syscall' in error;
}

/** Prints the error and ends the process with code 1. */
export function fail(error: unknown): never {
  const text =
    error instanceof Error ? (isSelfExplanatory(error) ? error.message : error.stack) : String(error);
  process.stderr.write(`hearth: ${text}\n`);
  process.exit(1);
}
