import { SqliteConnection, type SqliteFile } from '../../src/kernel/database/sqlite/connection.ts';

/** A simulated process that owns a connection until the process ends. */
interface Owner {
  readonly hasEnded: boolean;
}

const connections = new Map<string, { readonly connection: SqliteConnection; owner: Owner }[]>();

/**
 * Returns a connection whose owner has ended, or else a new one: opening a database takes longer than most work of a
 * simulated process. Rolls back the open transaction of the earlier owner.
 */
export function takeConnection(
  file: SqliteFile,
  access: 'reading' | 'writing',
  owner: Owner,
): SqliteConnection {
  const key = `${access} ${file.path}`;
  const known = connections.get(key) ?? [];
  connections.set(key, known);
  const unused = known.find(({ owner: earlier }) => earlier.hasEnded);
  if (!unused) {
    const connection = new SqliteConnection(file, access);
    known.push({ connection, owner });
    return connection;
  }
  if (unused.connection.inTransaction) unused.connection.run('rollback', []);
  unused.owner = owner;
  return unused.connection;
}

/** Closes all connections. */
export function closeConnections(): void {
  for (const { connection } of [...connections.values()].flat()) connection.close();
  connections.clear();
}
