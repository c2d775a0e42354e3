/** The tables of what is known about other servers. */
export interface DestinationTables {
  destinations: {
    server_name: string;
    /** Since when it can not be reached; null while it can. Milliseconds since the epoch, as all times here. */
    failure_since: number | null;
    /** When it was tried last; 0 while it can be reached. */
    retry_last_ts: number;
    /** For how many milliseconds after that it is left alone. */
    retry_interval: number;
    /** `documents` or `ecosystem`: how it spells paths; null until it has shown. */
    spelling: string | null;
  };
}
