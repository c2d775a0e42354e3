/** Tables of the keys of other servers. */
export interface KeyTables {
  server_keys: {
    server_name: string;
    /** `ed25519:name`. */
    key_id: string;
    /** Unpadded base64. */
    public_key: string;
    /** End of validity, capped; milliseconds since the epoch, like all times here. */
    valid_until_ts: number;
    /** When the server retired the key. */
    expired_ts: number | null;
    fetched_ts: number;
    /** The newest response of the server that contains this key, as signed. Notaries pass it on. */
    response: string;
  };
}
