/** Any failure that the database itself reported. `code` is its own: SQLSTATE or SQLite's extended result code. */
export class DatabaseError extends Error {
  override name = 'DatabaseError';
  readonly code: string;

  constructor(message: string, code: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** A primary key or unique index holds the value already. */
export class UniqueViolation extends DatabaseError {
  override name = 'UniqueViolation';
  /** The table whose key it is. */
  readonly table: string;

  constructor(table: string, code: string, options?: ErrorOptions) {
    super(`a row with this key exists already in ${table}`, code, options);
    this.table = table;
  }
}

/** The work of a transaction sent no statement for so long that it was undone, so that others may write. */
export class TransactionTimeout extends Error {
  override name = 'TransactionTimeout';
}

/** The database was closed, is being closed, or was lost for good. */
export class DatabaseClosed extends Error {
  override name = 'DatabaseClosed';
}

/** So many writes wait already that another one is refused. */
export class DatabaseOverloaded extends Error {
  override name = 'DatabaseOverloaded';
}
