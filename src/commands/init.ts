import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type Randomness, systemRandomness } from '../kernel/randomness.ts';
import { readConfiguration } from './configuration-files.ts';
import { CommandFailure } from './failure.ts';
import { starterConfiguration } from './starter-configuration.ts';

export interface InitOptions {
  readonly serverName: string;
  readonly directory: string;
}

/** `hearth init`: says what it made. */
export function init(options: InitOptions): void {
  const file = initialize(options, systemRandomness);
  process.stdout.write(`Wrote ${file} and the keys beside it.\nNow run: hearth serve -c ${file}\n`);
}

/**
 * Makes a configuration, its secrets and its signing key. Nothing that exists is touched.
 * @returns the path of the configuration
 * @throws CommandFailure when there is a configuration already, or the server name is not valid
 */
export function initialize({ serverName, directory }: InitOptions, randomness: Randomness): string {
  const file = join(directory, 'homeserver.yaml');
  if (existsSync(file)) throw new CommandFailure(`${file} exists already; nothing was changed`);
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const text = starterConfiguration({ serverName, directory: resolve(directory) }, randomness);
  writeFileSync(file, text, { mode: 0o600, flag: 'wx' });
  // Makes the signing key, too.
  readConfiguration([file], { environment: {}, createMissing: { randomness } });
  return file;
}
