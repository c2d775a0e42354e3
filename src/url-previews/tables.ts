/** The table of URL previews. */
export interface UrlPreviewTables {
  url_previews: {
    /** SHA-256 of the URL, base64url. */
    url_hash: string;
    /** Hours since the epoch when the page was fetched. */
    hour: number;
    /** JSON that clients receive. */
    response: string;
  };
}
