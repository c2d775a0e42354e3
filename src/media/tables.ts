/** The tables of media. Times in milliseconds since the epoch, sizes in bytes. */
export interface MediaTables {
  local_media: {
    media_id: string;
    /** Who has created the address, or uploaded. */
    user_id: string;
    created_at: number;
    /** Until when an upload may come, while none has. */
    expires_at: number | null;
    /** From here on: null until it has been uploaded. */
    file_id: string | null;
    uploaded_at: number | null;
    content_type: string | null;
    /** Null also when none was given. */
    file_name: string | null;
    size: number | null;
    /** Of the content, in hexadecimal. */
    sha256: string | null;
    /** Truth as 0 or 1: not for those who do not say who they are. */
    authenticated: number;
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
  };
}
