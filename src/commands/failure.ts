import { StartFailure } from '../kernel/start-failure.ts';

/** Something that the person at the terminal can put right; they are told the message and nothing else. */
export class CommandFailure extends Error {
  override readonly name = 'CommandFailure';
}

/** Whether the message says all that helps: the system's errors name the file or the address. */
function isSelfExplanatory(error: Error): boolean {
  return error instanceof CommandFailure || error instanceof StartFailure || 'syscall' in error;
}

/** Ends the process with what went wrong. */
export function fail(error: unknown): never {
  const text =
    error instanceof Error ? (isSelfExplanatory(error) ? error.message : error.stack) : String(error);
  process.stderr.write(`hearth: ${text}\n`);
  process.exit(1);
}
