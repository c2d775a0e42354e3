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

/**
 * Result codes of SQLite that are about the machine: busy, locked, no memory, read-only, input and output, full, can not
 * open.
 */
const ofTheMachine: readonly number[] = [5, 6, 7, 8, 10, 13, 14];

/**
 * Classes of PostgreSQL's codes that are about the machine or about other transactions, and what the platform says of
 * connections.
 */
const ofTheServer = /^(08|40|53|57|58|E[A-Z])/;

/** Whether an error says nothing about what was to be done: the same may well succeed later. */
export function isOutage(error: unknown): boolean {
  if (error instanceof DatabaseClosed || error instanceof DatabaseOverloaded) return true;
  if (error instanceof TransactionTimeout) return true;
  if (!(error instanceof DatabaseError)) return false;
  const { code } = error;
  // SQLSTATE has five characters, SQLite's numbers have fewer; a connection that broke has none.
  if (code.length === 5 || !/^\d+$/.test(code)) return code === '' || ofTheServer.test(code);
  return ofTheMachine.includes(Number(code) & 0xff);
}
