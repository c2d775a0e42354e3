import { MatrixError } from '../../protocol/index.ts';

/** Codes of a full disk, an exceeded quota and a too large file. */
const full = new Set(['ENOSPC', 'EDQUOT', 'EFBIG']);

/** Reports a failing disk: with the cause for the log, and a short message for the client. */
export class StorageError extends MatrixError {
  constructor(status: number, message: string, cause: unknown) {
    super(status, 'M_UNKNOWN', message);
    this.cause = cause;
  }
}

/** Turns an error of the operating system into one without paths, which clients may see. */
export function asStorageError(error: unknown): unknown {
  const code = (error as NodeJS.ErrnoException | undefined)?.code;
  if (typeof code !== 'string' || !/^E[A-Z]+$/.test(code)) return error;
  return full.has(code)
    ? new StorageError(507, 'The server has no disk space left to store files', error)
    : new StorageError(500, 'The server cannot store or read files at the moment', error);
}
