/** Why the server can not start, as somebody who runs it can put it right: they are told the message and nothing else. */
export class StartFailure extends Error {
  override name = 'StartFailure';
}

/** Runs a step of the start. @throws StartFailure with `what` before the reason, when it fails */
export async function startStep<T>(what: string, step: () => Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new StartFailure(`${what}: ${reason}`, { cause: error });
  }
}
