import { MatrixError } from '../../protocol/index.ts';

/** No room on the disk, or none for this user of it. */
const full = new Set(['ENOSPC', 'EDQUOT', 'EFBIG']);

/** A disk that does not do what it should: for the log, and a plain word for the client. */
export class StorageError extends MatrixError {
  constructor(status: number, message: string, cause: unknown) {
    super(status, 'M_UNKNOWN', message);
    this.cause = cause;
  }
}

/** What the operating system says of a file, as an error that a client may see: without paths. */
export function asStorageError(error: unknown): unknown {
  const code = (error as NodeJS.ErrnoException | undefined)?.code;
  if (typeof code !== 'string' || !/^E[A-Z]+$/.test(code)) return error;
  return full.has(code)
    ? new StorageError(507, 'This server has no room left to store files', error)
    : new StorageError(500, 'This server can not store or read files at the moment', error);
}
