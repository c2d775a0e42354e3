import type { Readable } from 'node:stream';

/** A file to store, whose content is known. */
export interface FileToStore {
  /** Where this server has it; absolute. */
  readonly source: string;
  /** Bytes. */
  readonly size: number;
  /** In hexadecimal. */
  readonly sha256: string;
}

/**
 * Further storage of media. A module of an operator exports by default a function that takes `config` and returns this,
 * or a promise of it. Paths consist of letters, digits, dots and slashes, for instance `local/aB/cD/eFgH`.
 */
export interface StorageProvider {
  /** Stores a file durably; replaces one of the same path. @throws when that is not certain */
  store(path: string, file: FileToStore): Promise<void>;
  /** Opens a file; `undefined` when there is none. @throws when the storage does not answer */
  open(path: string): Promise<Readable | undefined>;
  /** Deletes a file, if there is one. */
  delete(path: string): Promise<void>;
}
