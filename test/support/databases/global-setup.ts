import { rmSync } from 'node:fs';
import { removeAbandonedFolders } from './database-folder.ts';
import { portVariable } from './databases.ts';
import { folderVariable, makeFolder } from './migrated-databases.ts';
import { type PostgresServer, startPostgres } from './postgres-server.ts';

let server: PostgresServer | undefined;
let folder: string | undefined;

/** Runs once before all test files (`node --test --test-global-setup`). */
export async function globalSetup(): Promise<void> {
  removeAbandonedFolders();
  server = await startPostgres();
  process.env[portVariable] = String(server.port);
  folder = makeFolder();
  process.env[folderVariable] = folder;
}

/** Runs once after all test files. */
export async function globalTeardown(): Promise<void> {
  await server?.stop();
  if (folder) rmSync(folder, { recursive: true, force: true });
}
