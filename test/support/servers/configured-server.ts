import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import { loadConfigurationSources } from '../../../src/configuration/load.ts';
import { createHomeserver } from '../../../src/homeserver.ts';
import { systemClock } from '../../../src/kernel/clock.ts';
import type { DatabaseOptions } from '../../../src/kernel/database/index.ts';
import { createLogger } from '../../../src/kernel/observability/index.ts';
import { systemRandomness } from '../../../src/kernel/randomness.ts';

export interface ConfiguredServer {
  /** One for each address of each listener, in the order of the file. */
  readonly addresses: readonly string[];
  /** What was logged, from `debug` on. */
  readonly log: readonly Readonly<Record<string, unknown>>[];
  stop(): Promise<void>;
}

/**
 * Starts a homeserver as its configuration says and nothing else, from the options in a file.
 * @param yaml the text of the file
 * @param directory where relative files and the signing key are
 */
export async function startConfigured(yaml: string, directory: string): Promise<ConfiguredServer> {
  const { values, errors } = loadConfigurationSources([{ file: 'homeserver.yaml', text: yaml }], {
    environment: {},
    createMissing: { randomness: systemRandomness },
    directory,
  });
  assert.deepEqual(errors, []);
  const log: Record<string, unknown>[] = [];
  const homeserver = createHomeserver({
    configuration: {
      ...values,
      media: { ...values.media, media_store_path: resolve(directory, values.media.media_store_path) },
    },
    clock: systemClock,
    randomness: systemRandomness,
    log: createLogger({ level: 'debug', destination: { write: (line) => void log.push(JSON.parse(line)) } }),
  });
  const { addresses } = await homeserver.start();
  return { addresses, log, stop: () => homeserver.stop() };
}

/** The option `database` for a database that a test has made. */
export function databaseOption(options: DatabaseOptions): Readonly<Record<string, unknown>> {
  if (options.kind === 'sqlite') return { name: 'sqlite3', args: { database: options.path } };
  const { host, port, user, password, database } = options;
  return { name: 'psycopg2', args: { host, port, user, password, dbname: database } };
}
