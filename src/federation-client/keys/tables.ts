/** The tables of other servers' keys. */
export interface KeyTables {
  server_keys: {
    server_name: string;
    /** `ed25519:name`. */
    key_id: string;
    /** Unpadded base64. */
    public_key: string;
    /** Until when the key counts, capped; milliseconds since the epoch, as all times here. */
    valid_until_ts: number;
    /** When the server has retired it. */
    expired_ts: number | null;
    fetched_ts: number;
    /** The newest answer of the server that has this key, as signed: what a notary passes on. */
    response: string;
  };
}
