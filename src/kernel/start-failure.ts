/**
 * A reason why the server cannot start that its operator can fix. The operator sees the message only, no
 * stack.
 */
export class StartFailure extends Error {
  override name = 'StartFailure';
}

/**
 * Runs one step of the start.
 * @throws StartFailure when the step fails, with the message `name: reason`, or the StartFailure that the
 * step has thrown itself
 */
export async function startStep<T>(name: string, step: () => Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (error) {
    if (error instanceof StartFailure) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new StartFailure(`${name}: ${reason}`, { cause: error });
  }
}
