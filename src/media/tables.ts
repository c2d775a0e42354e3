import type { Generated } from 'kysely';

/** The tables of media. Times in milliseconds since the epoch, sizes in bytes. */
export interface MediaTables {
  local_media: {
    media_id: string;
    /** Creator of the media id; empty for images of URL previews. */
    user_id: string;
    created_at: number;
    /** When a media id without an upload expires. */
    expires_at: number | null;
    /** The columns from here to `sha256` are null until the upload. */
    file_id: string | null;
    uploaded_at: number | null;
    content_type: string | null;
    /** Also null for uploads without a name. */
    file_name: string | null;
    size: number | null;
    /** Hash of the content, in hexadecimal. */
    sha256: string | null;
    /** 1 when unauthenticated requests must not receive the file, else 0. */
    authenticated: number;
    /** When the file was last read; written once a minute. */
    last_access_at: Generated<number | null>;
    /** The administrator who quarantined the file; null for readable files. */
    quarantined_by: Generated<string | null>;
    /** 1 when the file must not be quarantined or expire, else 0. */
    protected: Generated<number>;
    /** When an image of a URL preview is deleted; null for uploads. */
    preview_until: Generated<number | null>;
  };
  remote_media: {
    server_name: string;
    media_id: string;
    file_id: string;
    fetched_at: number;
    content_type: string;
    file_name: string | null;
    size: number;
    sha256: string;
    authenticated: number;
    last_access_at: Generated<number | null>;
    quarantined_by: Generated<string | null>;
  };
  /**
   * Number and bytes of the uploads of each local user with uploads, without images of URL previews. The media ids of
   * all these uploads were made from `first_at` to `last_at`, in milliseconds since the epoch. Deletions do not shorten
   * this period. Written in the transactions that change `local_media`.
   */
  media_usage: {
    user_id: string;
    files: number;
    bytes: number;
    first_at: number;
    last_at: number;
  };
  /** The last change of each file that administrators have quarantined or released, in the order of the changes. */
  quarantine_changes: {
    id: Generated<number>;
    server_name: string;
    media_id: string;
    /** 1 for a quarantine, 0 for a release. */
    is_quarantined: number;
  };
}
