import { StartFailure } from '../start-failure.ts';

/**
 * Any error reported by the database. `code` is the code of the database: SQLSTATE of PostgreSQL, or SQLite's extended
 * result code. For broken connections it is the operating system's code, or empty.
 */
export class DatabaseError extends Error {
  override name = 'DatabaseError';
  readonly code: string;

  constructor(message: string, code: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** A primary key or unique index already contains the value. */
export class UniqueViolation extends DatabaseError {
  override name = 'UniqueViolation';
  /** The table that has the key. */
  readonly table: string;

  constructor(table: string, code: string, options?: ErrorOptions) {
    super(`a row with this key already exists in ${table}`, code, options);
    this.table = table;
  }
}

/** A transaction was rolled back because its work sent no statement for too long. */
export class TransactionTimeout extends Error {
  override name = 'TransactionTimeout';
}

/** Another server has taken the lease on writing: this server cannot write any more. */
export class LeaseLost extends Error {
  override name = 'LeaseLost';
}

/** Another server uses the database, so this process cannot have it exclusively. */
export class DatabaseInUse extends StartFailure {}

/** The database was closed, is closing, or was lost permanently. */
export class DatabaseClosed extends Error {
  override name = 'DatabaseClosed';
}

/** A write was rejected because too many writes are waiting. */
export class DatabaseOverloaded extends Error {
  override name = 'DatabaseOverloaded';
}

/**
 * Result codes of SQLite that concern the machine: busy, locked, out of memory, read-only, I/O error, full,
 * cannot open.
 */
const machineCodes: readonly number[] = [5, 6, 7, 8, 10, 13, 14];

/**
 * Classes of PostgreSQL's codes that concern the machine or other transactions, and the operating system's error codes
 * for broken connections.
 */
const serverCodes = /^(08|40|53|57|58|E[A-Z])/;

/** SQLITE_FULL, and SQLITE_IOERR_SHMSIZE: no disk space for the shared memory of the write-ahead log. */
const diskFullCodes: readonly string[] = ['13', '4874'];

/** Whether a disk is full: an error of a database, or of a file. */
export function isDiskFull(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (error instanceof DatabaseError) return diskFullCodes.includes(error.code) || error.code === '53100';
  return code === 'ENOSPC' || code === 'EDQUOT';
}

/** Whether an error is independent of the failed operation, so that the same operation may succeed later. */
export function isOutage(error: unknown): boolean {
  if (error instanceof DatabaseClosed || error instanceof DatabaseOverloaded) return true;
  if (error instanceof TransactionTimeout || error instanceof LeaseLost) return true;
  if (!(error instanceof DatabaseError)) return false;
  const { code } = error;
  // SQLSTATE has five characters; SQLite's codes are shorter numbers; broken connections have a code like ECONNRESET, or none.
  if (code.length === 5 || !/^\d+$/.test(code)) return code === '' || serverCodes.test(code);
  return machineCodes.includes(Number(code) & 0xff);
}
