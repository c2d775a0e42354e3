import { DatabaseSync } from 'node:sqlite';
import { StartFailure } from '../../start-failure.ts';
import { DatabaseError, DatabaseInUse } from '../errors.ts';
import { plainError, startProblem, typedError } from './errors.ts';

/** Milliseconds to wait for a server that is stopping, as in a restart. */
const claimTimeout = 5_000;

/**
 * Claims a SQLite database for this process. Two servers on one file would assign the same positions and run each
 * other's jobs; SQLite itself would let both write. The claim is a lock on a separate file. The operating system
 * releases the lock when the process ends in any way; the file stays.
 * @param timeout maximum milliseconds to wait for another server; the thread is blocked while it waits
 * @returns a function that releases the claim
 * @throws DatabaseInUse when another process has the claim
 * @throws StartFailure when the file cannot be locked for another reason, for instance a full disk
 */
export function claimFile(path: string, timeout = claimTimeout): () => void {
  const lock = open(`${path}-lock`, timeout);
  try {
    lock?.exec('begin exclusive');
  } catch (error) {
    lock?.close();
    if (isBusy(error)) throw new DatabaseInUse(`the database ${path} is in use by another server`);
    throw new StartFailure(`cannot lock the database ${path}: ${startProblem(error)}`, { cause: error });
  }
  return () => lock?.close();
}

/** Whether an error is SQLITE_BUSY with any extension: another process has the lock. */
function isBusy(error: unknown): boolean {
  const typed = typedError(plainError(error));
  return typed instanceof DatabaseError && (Number(typed.code) & 0xff) === 5;
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
