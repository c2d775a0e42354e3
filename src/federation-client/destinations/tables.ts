/** The table of facts about other servers. */
export interface DestinationTables {
  destinations: {
    server_name: string;
    /**
     * Since when the server is unreachable; null while it is reachable. Milliseconds since the epoch, like
     * all times here.
     */
    failure_since: number | null;
    /** Time of the last recorded failure; 0 while the server is reachable. */
    retry_last_ts: number;
    /** Milliseconds of backoff after `retry_last_ts`. */
    retry_interval: number;
    /**
     * The spelling of paths that the server answers: `documents` (`/_proto`) or `ecosystem` (`/_matrix`); null while
     * unknown.
     */
    spelling: string | null;
  };
}
