/** The tables of filters. */
export interface FilterTables {
  filters: {
    user_id: string;
    /** A hash of the definition, so that the same filter is stored once. */
    filter_id: string;
    /** JSON. */
    definition: string;
    /** Milliseconds since the epoch. */
    created_at: number;
  };
}
