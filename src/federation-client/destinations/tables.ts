/** Tables of facts about other servers. */
export interface DestinationTables {
  destinations: {
    server_name: string;
    /**
     * Since when the server is unreachable; null while it is reachable. Milliseconds since the epoch, like
     * all times here.
     */
    failure_since: number | null;
    /** Time of the last attempt; 0 while the server is reachable. */
    retry_last_ts: number;
    /** Milliseconds of backoff after that. */
    retry_interval: number;
    /** `documents` or `ecosystem`: the namespace of its paths; null while unknown. */
    spelling: string | null;
  };
}
