import { type DatabaseOptions, isDiskFull, isOutage } from '../kernel/database/index.ts';
import { StartFailure } from '../kernel/start-failure.ts';
import { MatrixError } from '../protocol/index.ts';

/** Seconds after which clients may try again. */
const retryAfter = 5;

/**
 * Returns the error for clients when the disk is full or the database cannot be used. It tells clients that the same
 * request may succeed later.
 * @param contact `admin_contact`; clients show it to their users
 * @returns `undefined` for other errors
 */
export function outageForClient(error: unknown, contact: string | null): MatrixError | undefined {
  const found = outageIn(error);
  if (found === undefined) return undefined;
  const headers = { 'Retry-After': String(retryAfter) };
  if (!isDiskFull(found)) {
    const text = 'The database of this server is not available at the moment. Try again later';
    return new MatrixError(503, 'M_UNKNOWN', text, {}, headers);
  }
  const text = 'The disk of this server is full: nothing can be stored at the moment';
  // Source: client-server API, "Common error codes": M_RESOURCE_LIMIT_EXCEEDED must name a contact.
  if (contact === null) return new MatrixError(507, 'M_UNKNOWN', text, {}, headers);
  return new MatrixError(507, 'M_RESOURCE_LIMIT_EXCEEDED', text, { admin_contact: contact }, headers);
}

/** Turns an error of the disk or the database into a `StartFailure` that names the database; returns other errors unchanged. */
export function startFailureOf(error: unknown, options: DatabaseOptions): unknown {
  const found = error instanceof StartFailure ? undefined : outageIn(error);
  if (found === undefined) return error;
  const database =
    options.kind === 'sqlite'
      ? `the database ${options.path}`
      : `the PostgreSQL database ${options.database ?? ''} on ${options.host ?? 'localhost'}`;
  const problem = isDiskFull(found) ? 'cannot be written because its disk is full' : 'cannot be used';
  return new StartFailure(`${database} ${problem}: ${found.message}`, { cause: error });
}

/** Returns the error of the disk or the database in a chain of causes; `undefined` if there is none. */
function outageIn(error: unknown): Error | undefined {
  for (let found = error; found instanceof Error; found = found.cause) {
    if (isOutage(found) || isDiskFull(found)) return found;
  }
  return undefined;
}

/** Returns why writing does not work, in words without details, because /health is public. */
export function describeOutage(error: unknown): string {
  const found = outageIn(error);
  if (found === undefined) return 'the database cannot be written';
  return isDiskFull(found) ? 'the disk is full' : 'the database is not available';
}
