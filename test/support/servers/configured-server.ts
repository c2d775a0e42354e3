import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import { loadConfigurationSources } from '../../../src/configuration/load.ts';
import { createHomeserver } from '../../../src/homeserver.ts';
import { systemClock } from '../../../src/kernel/clock.ts';
import { createLogger } from '../../../src/kernel/observability/index.ts';
import { systemRandomness } from '../../../src/kernel/randomness.ts';

export interface ConfiguredServer {
  /** One address for each address of each listener, in the order of the file. */
  readonly addresses: readonly string[];
  /** Log lines of the level `debug` and above. */
  readonly log: readonly Readonly<Record<string, unknown>>[];
  stop(): Promise<void>;
}

/**
 * Starts a homeserver from a configuration file alone.
 * @param yaml the text of the file
 * @param directory the folder of the signing key and of relative paths
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
