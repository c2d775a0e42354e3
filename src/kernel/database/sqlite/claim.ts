import { DatabaseSync } from 'node:sqlite';
import { StartFailure } from '../../start-failure.ts';

/** Milliseconds to wait for a server that is stopping, as in a restart. */
const claimTimeout = 5_000;

/**
 * Claims a SQLite database for this process. Two servers on one file would assign the same positions and run
 * each other's jobs; SQLite itself would let both write. The claim is a lock on a separate file, which the
 * operating system releases when the process ends in any way; the file stays.
 * @param timeout milliseconds to wait for another server, for which the thread is blocked
 * @returns a function that releases the claim
 * @throws StartFailure when another server has the claim
 */
export function claimFile(path: string, timeout = claimTimeout): () => void {
  const lock = open(`${path}-lock`, timeout);
  try {
    lock?.exec('begin exclusive');
  } catch {
    lock?.close();
    throw new StartFailure(`the database ${path} is in use by another server`);
  }
  return () => lock?.close();
}

/**
 * Returns undefined when the lock file cannot be created: opening the database then fails too, with the
 * reason.
 */
function open(path: string, timeout: number): DatabaseSync | undefined {
  try {
    return new DatabaseSync(path, { timeout });
  } catch {
    return undefined;
  }
}
