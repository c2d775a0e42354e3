import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  Kysely,
  type QueryResult,
  Transaction,
} from 'kysely';

/** A row as returned by Kysely: a plain object, column name to value. */
export type Row = Record<string, unknown>;

/**
 * The result of a statement. `changes` is the number of written rows. For a statement that writes nothing, it is absent
 * on PostgreSQL, and on SQLite the number of returned rows.
 */
export interface Outcome {
  readonly rows: Row[];
  readonly changes?: number;
}

/** Runs one compiled statement. */
export type Execute = (sql: string, parameters: readonly unknown[]) => Promise<Outcome>;

/** The parts of a Kysely dialect that define how SQL is written, without the driver that runs it. */
export type Grammar = Omit<Dialect, 'createDriver'>;

/** Kinds of queries that write. */
const writing = ['InsertQueryNode', 'UpdateQueryNode', 'DeleteQueryNode', 'MergeQueryNode'];

/** Returns query builders whose statements run separately in `execute` and must not write. */
export function readerOver<S>(grammar: Grammar, execute: Execute): Kysely<S> {
  return new Kysely<S>({ dialect: dialectOver(grammar, readOnly(connectionOver(execute))) });
}

/** Returns query builders whose statements run in `execute`, inside a transaction that the caller ends. */
export function writerOver<S>(reader: Kysely<S>, grammar: Grammar, execute: Execute): Transaction<S> {
  const connection = connectionOver(execute);
  const dialect = dialectOver(grammar, connection);
  const executor = reader.getExecutor().withConnectionProvider({
    provideConnection: (consumer) => consumer(connection),
  });
  return new Transaction<S>({ config: { dialect }, dialect, driver: dialect.createDriver(), executor });
}

function dialectOver(grammar: Grammar, connection: DatabaseConnection): Dialect {
  return {
    createAdapter: () => grammar.createAdapter(),
    createQueryCompiler: () => grammar.createQueryCompiler(),
    createIntrospector: (db) => grammar.createIntrospector(db),
    createDriver: () => driverOver(connection),
  };
}

function driverOver(connection: DatabaseConnection): Driver {
  const refuse = async () => {
    throw new Error('start transactions with Database.transaction');
  };
  return {
    init: async () => {},
    acquireConnection: async () => connection,
    releaseConnection: async () => {},
    beginTransaction: refuse,
    commitTransaction: refuse,
    rollbackTransaction: refuse,
    destroy: async () => {},
  };
}

function connectionOver(execute: Execute): DatabaseConnection {
  return {
    async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
      const { rows, changes } = await execute(query.sql, query.parameters);
      const result = { rows: rows as R[] };
      return changes === undefined ? result : { ...result, numAffectedRows: BigInt(changes) };
    },
    streamQuery() {
      throw new Error('results cannot be streamed: read them in pages');
    },
  };
}

/** Rejects writes outside of transactions, except those in raw SQL, so that the mistake shows on every database. */
function readOnly(connection: DatabaseConnection): DatabaseConnection {
  return {
    ...connection,
    async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
      if (writing.includes(query.query.kind))
        throw new Error('readers cannot write: use Database.transaction');
      return connection.executeQuery<R>(query);
    },
  };
}
