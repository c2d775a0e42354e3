/** The table of URL previews. */
export interface UrlPreviewTables {
  url_previews: {
    /** SHA-256 of the URL, base64url. */
    url_hash: string;
    /** When the page was fetched, in hours since the epoch. */
    hour: number;
    /** JSON that clients receive. */
    response: string;
  };
}
