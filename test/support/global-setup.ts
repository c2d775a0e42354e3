import { portVariable } from './databases.ts';
import { type PostgresServer, startPostgres } from './postgres-server.ts';

let server: PostgresServer | undefined;

/** Runs once before all test files (`node --test --test-global-setup`). */
export async function globalSetup(): Promise<void> {
  server = await startPostgres();
  process.env[portVariable] = String(server.port);
}

/** Runs once after all test files. */
export async function globalTeardown(): Promise<void> {
  await server?.stop();
}
