import {
  compactSqliteFile,
  type DatabaseOptions,
  openDatabaseExclusively,
} from '../../kernel/database/index.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import type { ConfigFlags } from '../configuration-files.ts';
import { configuredDatabases } from './configured-database.ts';

/** `hearth database compact`: releases the disk space of deleted rows while the server is stopped. */
export async function compactDatabase(flags: ConfigFlags): Promise<void> {
  const { main, state } = configuredDatabases(flags);
  let bytes = 0;
  for (const options of state ? [main, state] : [main]) bytes += await compact(options);
  process.stdout.write(`${(bytes / 1_048_576).toFixed(1)} MiB of disk space were released.\n`);
}

async function compact(options: DatabaseOptions): Promise<number> {
  if (options.kind === 'sqlite') return compactSqliteFile(options.path);
  const database = await openDatabaseExclusively(options, { log: silentLogger }, () => {});
  try {
    return await database.releaseSpace(new AbortController().signal);
  } finally {
    await database.close();
  }
}
