/** Facts about a database that are read without opening it as the server does: nothing is created, changed or kept locked. */
export interface DatabaseFacts {
  /** Version of SQLite or PostgreSQL. */
  readonly version: string;
  readonly encoding: string;
  /** Names of the applied migrations; `undefined` when the server has never been started on this database. */
  readonly applied: readonly string[] | undefined;
  /** Describes the process that writes the database; `undefined` when none does. */
  readonly writer: string | undefined;
  /**
   * Absent unless `hearth database move` has moved the contents away, or has not finished filling the database. `other` names
   * the database on the other side of the move.
   */
  readonly move?: { readonly state: string; readonly other: string };
  /**
   * PostgreSQL: the collation versions that the database has recorded and that the library has. Absent when they are
   * equal.
   */
  readonly collation?: { readonly recorded: string; readonly actual: string };
  /** PostgreSQL: milliseconds since the epoch by its clock. */
  readonly now?: number;
  /** PostgreSQL: maximum number of connections of all clients together, and number of open connections. */
  readonly connections?: { readonly maximum: number; readonly open: number };
}
