import type { Generated } from 'kysely';

/** Tables of the keys of other servers. */
export interface KeyTables {
  server_keys: {
    server_name: string;
    /** `ed25519:name`. */
    key_id: string;
    /** Unpadded base64. */
    public_key: string;
    /** End of validity, at most 7 days after the fetch; milliseconds since the epoch, like all times here. */
    valid_until_ts: number;
    /** When the server retired the key. */
    expired_ts: number | null;
    fetched_ts: number;
    /** The newest response that contains this key. Its text may be deleted: see `maxResponses`. */
    response_id: string;
    /**
     * 1 when the key has verified an event, otherwise 0. Above the maximum number of keys, keys with 0 are deleted
     * first.
     */
    for_events: Generated<number>;
  };
  /**
   * Responses of servers with their keys. This server passes them on as a notary. A response with many keys is stored
   * once.
   */
  server_key_responses: {
    server_name: string;
    /** Digest of the text. Responses that were stored before this table existed have the id of one of their keys. */
    response_id: string;
    /** Canonical JSON as signed by the server. */
    text: string;
    fetched_ts: number;
  };
}
