/**
 * A problem that prevents the start of the server and that the operator can fix. The operator sees only the message, no
 * stack.
 */
export class StartFailure extends Error {
  override name = 'StartFailure';
}

/**
 * Runs one step of the start.
 * @throws StartFailure when the step fails: the StartFailure that the step threw, or for any other error one with the
 * message `name: reason`
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
