/** Something that the person at the terminal can put right; they are told the message and nothing else. */
export class CommandFailure extends Error {
  override readonly name = 'CommandFailure';
}

/** Ends the process with what went wrong. */
export function fail(error: unknown): never {
  const text =
    error instanceof CommandFailure ? error.message : error instanceof Error ? error.stack : String(error);
  process.stderr.write(`hearth: ${text}\n`);
  process.exit(1);
}
