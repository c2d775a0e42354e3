import type { Readable } from 'node:stream';

/** A file to store, with its size and hash. */
export interface FileToStore {
  /** Absolute path of the file on this machine. */
  readonly source: string;
  /** Bytes. */
  readonly size: number;
  /** In hexadecimal. */
  readonly sha256: string;
}

/**
 * Additional storage for media. The default export of a storage module is a function that takes `config` and returns a
 * `StorageProvider` or a promise of one. Paths consist of letters, digits, dots and slashes, for instance
 * `local/aB/cD/eFgH`.
 */
export interface StorageProvider {
  /** Stores a file durably; replaces a file with the same path. @throws Error unless the file is certainly stored */
  store(path: string, file: FileToStore): Promise<void>;
  /** Opens a file; `undefined` when it does not exist. @throws Error when the storage does not answer */
  open(path: string): Promise<Readable | undefined>;
  /** Deletes a file if it exists. */
  delete(path: string): Promise<void>;
}
