/**
 * The kind of a stored file. `local`: an upload of a local user or an image of a URL preview, with this server's name in
 * its address. `remote`: a copy of remote media.
 */
export type MediaArea = 'local' | 'remote';

/** The content type and file name that the uploader or the remote server claimed; unverified. */
export interface MediaDescription {
  readonly contentType: string;
  readonly fileName: string | undefined;
}

/** A stored file. */
export interface MediaFile extends MediaDescription {
  readonly area: MediaArea;
  /** Determines the path of the file on the disk and at storage providers. */
  readonly fileId: string;
  /** Bytes. */
  readonly size: number;
  /** In hexadecimal. */
  readonly sha256: string;
  /** Whether the file was stored while `enable_authenticated_media` was on. */
  readonly isAuthenticated: boolean;
  /** Whether an administrator has made the file unreadable. */
  readonly isQuarantined: boolean;
}
