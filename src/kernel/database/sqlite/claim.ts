import { DatabaseSync } from 'node:sqlite';
import { StartFailure } from '../../start-failure.ts';

/** Milliseconds for a server that is just being stopped, as when it is started again. Nothing else is done meanwhile. */
const patience = 5_000;

/**
 * Takes a SQLite database for this process alone. Two servers on one file would give out the same positions and do each
 * other's jobs; SQLite itself lets both write. The claim is a lock on a file beside it, which ends with the process
 * however that ends; the file stays.
 * @returns what gives the database back
 * @throws StartFailure when another server has it
 */
export function claimFile(path: string): () => void {
  const lock = open(`${path}-lock`);
  try {
    lock?.exec('begin exclusive');
  } catch {
    lock?.close();
    throw new StartFailure(`the database ${path} is in use by another server`);
  }
  return () => lock?.close();
}

/** Where a file can not be made the database can not be opened either, and says why. */
function open(path: string): DatabaseSync | undefined {
  try {
    return new DatabaseSync(path, { timeout: patience });
  } catch {
    return undefined;
  }
}
