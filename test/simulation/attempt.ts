import { MatrixError } from '../../src/protocol/index.ts';
import type { SimulatedServer } from './server.ts';
import { type Run, unlessEnded } from './server-process.ts';
import type { World } from './world.ts';

/** Outcome of a client's request, as the client knows it: `unanswered` when the server crashed before it answered. */
export type Answer<T> = { readonly value: T } | 'refused' | 'unanswered';

/**
 * Runs a client's request at a server. Never rejects. Reports an error other than `MatrixError`, and a response 500
 * M_UNKNOWN, as a failure of the simulation.
 * @param what description for the trace when the request does not succeed
 */
export async function attempt<T>(
  { trace, fail }: Pick<World, 'trace' | 'fail'>,
  server: SimulatedServer,
  what: string,
  work: (run: Run) => Promise<T>,
): Promise<Answer<T>> {
  const { run } = server;
  if (!run) return 'unanswered';
  try {
    const done = await unlessEnded(
      run,
      work(run).then((value) => ({ value })),
    );
    if (done === undefined) trace.note(server.name, `${what}: no answer`);
    return done ?? 'unanswered';
  } catch (error) {
    if (error instanceof MatrixError) {
      trace.note(server.name, `${what}: refused, ${error.errcode} ${error.message}`);
      if (error.status === 500 && error.errcode === 'M_UNKNOWN') fail(`${what}: ${error.message}`);
      return 'refused';
    }
    if (run.isAlive) fail(`${what}: ${(error as Error).stack}`);
    return 'unanswered';
  }
}
