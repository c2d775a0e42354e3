/** Where a file belongs: uploads of local users, which nobody else has, or copies from other servers. */
export type MediaArea = 'local' | 'remote';

/** What is said of a file by whoever uploads or sends it. */
export interface MediaDescription {
  readonly contentType: string;
  readonly fileName: string | undefined;
}

/** A file that is stored here. */
export interface MediaFile extends MediaDescription {
  readonly area: MediaArea;
  /** Its name on disk. */
  readonly fileId: string;
  /** Bytes. */
  readonly size: number;
  /** In hexadecimal. */
  readonly sha256: string;
  /** Stored while `enable_authenticated_media` was on. */
  readonly isAuthenticated: boolean;
}
