/** The tables of filters. */
export interface FilterTables {
  filters: {
    user_id: string;
    /** Made from the definition, so that the same one is not stored twice. */
    filter_id: string;
    /** JSON. */
    definition: string;
    /** Milliseconds since the epoch. */
    created_at: number;
  };
}
