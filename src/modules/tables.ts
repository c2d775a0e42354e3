/** The tables of modules. */
export interface ModuleTables {
  /** The values that modules store. */
  module_entries: {
    /** The name that the module has chosen. */
    store: string;
    /** The key as hexadecimal digits of its UTF-8 bytes, so that both databases sort keys in the same order. */
    entry_key: string;
    /** As JSON. */
    value: string;
  };
  /** The migrations that have run on a store. */
  module_store_migrations: {
    store: string;
    name: string;
    /** Milliseconds since the epoch. */
    applied_ts: number;
  };
}
