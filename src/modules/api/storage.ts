import type { JsonValue } from '../../protocol/index.ts';

/** One value of a store. */
export interface StoreEntry {
  readonly key: string;
  readonly value: JsonValue;
}

/** A change of one value; `undefined` deletes it. */
export interface StoreChange {
  readonly key: string;
  readonly value: JsonValue | undefined;
}

/**
 * Values of a module in the database of the server: JSON by key. Keys have 1 to 500 bytes, values at most 1 MiB as JSON.
 * Backups contain them.
 */
export interface ModuleStore {
  get(key: string): Promise<JsonValue | undefined>;
  set(key: string, value: JsonValue): Promise<void>;
  delete(key: string): Promise<void>;
  /** Makes up to 1,000 changes: all, or none when the promise is rejected. */
  write(changes: readonly StoreChange[]): Promise<void>;
  /**
   * Replaces a value by the result of `change`, with no other write of the store in between.
   * @param change receives `undefined` where there is no value, and deletes the value by returning `undefined`; must
   * not be async
   * @returns the result
   */
  update(
    key: string,
    change: (value: JsonValue | undefined) => JsonValue | undefined,
  ): Promise<JsonValue | undefined>;
  /**
   * Lists values whose keys begin with `prefix`, in the order of the bytes of their keys.
   * @param after lists only keys that come after this one
   * @param limit 100 when absent, at most 1,000
   */
  list(query?: {
    readonly prefix?: string;
    readonly after?: string;
    readonly limit?: number;
  }): Promise<StoreEntry[]>;
}

/** Brings the values of a store into a new form. */
export interface StoreMigration {
  /** Unique in its store. */
  readonly name: string;
  /** Runs once. Must be idempotent: after a crash, or a failure, it runs again. */
  up(store: ModuleStore): Promise<void>;
}

/** Stores of modules. */
export interface StoreAccess {
  /**
   * Opens a store; migrations that have not run on it run first, in order. Usable while the module is being loaded, and later.
   * @param name 1 to 64 of the characters a-z, 0-9, `.`, `_` and `-`; modules that use the same name share the store
   */
  open(name: string, migrations?: readonly StoreMigration[]): Promise<ModuleStore>;
}
