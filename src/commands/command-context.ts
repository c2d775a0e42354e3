/** The output streams and the environment variables of a command. */
export interface CommandContext {
  readonly stdout: { write(text: string): unknown };
  readonly stderr: { readonly isTTY?: boolean; write(text: string): unknown };
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** The output streams and the environment variables of this process. */
export const processContext: CommandContext = {
  stdout: process.stdout,
  stderr: process.stderr,
  environment: process.env,
};
