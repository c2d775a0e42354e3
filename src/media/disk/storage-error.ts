import { MatrixError } from '../../protocol/index.ts';

/** Error codes of a full disk, an exceeded quota and a file that is too large. */
const fullDiskCodes = new Set(['ENOSPC', 'EDQUOT', 'EFBIG']);

/** A failure of the disk or of a storage provider, with the cause for the log and a message without paths for the client. */
export class StorageError extends MatrixError {
  constructor(status: number, message: string, cause: unknown) {
    super(status, 'M_UNKNOWN', message);
    this.cause = cause;
  }
}

/** Converts an error of the operating system to a `StorageError`; returns other errors unchanged. */
export function asStorageError(error: unknown): unknown {
  const code = (error as NodeJS.ErrnoException | undefined)?.code;
  if (typeof code !== 'string' || !/^E[A-Z]+$/.test(code)) return error;
  return fullDiskCodes.has(code)
    ? new StorageError(507, 'The server has no disk space left to store files', error)
    : new StorageError(500, 'The server cannot store or read files at the moment', error);
}
