import type { JsonObject } from '../protocol/index.ts';

/** `time_period` in milliseconds, `max_size` in bytes. */
export interface UploadLimit {
  readonly time_period: number;
  readonly max_size: number;
}

/** A file that has been received, and that users and servers cannot read yet. */
export interface ReceivedFile {
  /** The local user who uploads the file; absent for files of other servers. */
  readonly userId: string | undefined;
  /** The server that the file was fetched from; absent for uploads. */
  readonly remoteServer: string | undefined;
  readonly contentType: string;
  readonly fileName: string | undefined;
  /** Bytes. */
  readonly size: number;
  /** In hexadecimal. */
  readonly sha256: string;
  /** Reads the bytes of the file. */
  read(): AsyncIterable<Uint8Array>;
}

/** An upload that a limit has rejected. */
export interface RejectedUpload {
  readonly userId: string;
  readonly limit: UploadLimit;
  /** Bytes of the user's uploads in the period of the limit. */
  readonly used: number;
  /** Bytes of the upload; 0 if it was rejected before it arrived. */
  readonly size: number;
}

/**
 * Rules of the media repository in addition to its options. Modules supply them. An absent member means that there is
 * no such rule.
 */
export interface MediaRepositoryRules {
  /** Checks a file before it is stored. @throws MatrixError */
  readonly checkFile?: ((file: ReceivedFile) => Promise<void>) | undefined;
  /** Checks the size of an upload. @throws MatrixError M_TOO_LARGE */
  readonly checkSize?: ((userId: string, size: number) => Promise<void>) | undefined;
  /** Returns the limits of a user's uploads; `undefined` for the limits of the configuration. */
  readonly uploadLimits?: ((userId: string) => Promise<readonly UploadLimit[] | undefined>) | undefined;
  /** Called after an upload was rejected because of a limit. */
  readonly limitExceeded?: ((upload: RejectedUpload) => void) | undefined;
  /** Returns the answer of `GET /media/config` for a user; `undefined` for the default. */
  readonly config?: ((userId: string) => Promise<JsonObject | undefined>) | undefined;
}
