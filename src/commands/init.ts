import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { sampleConfiguration } from '../configuration/sample.ts';
import { fileProblem, writePrivateFile } from '../kernel/config/index.ts';
import { ownCommand } from '../kernel/process/index.ts';
import { type Randomness, randomString, systemRandomness } from '../kernel/randomness.ts';
import { readConfiguration } from './configuration-files.ts';
import { CommandFailure } from './failure.ts';

export interface InitOptions {
  readonly serverName: string;
  readonly directory: string;
  /** The addresses to listen on; the loopback addresses by default. */
  readonly bindAddresses?: readonly string[];
}

/** `hearth init`: creates a configuration and prints its path. */
export function init(options: InitOptions): void {
  const file = initialize(options, systemRandomness);
  process.stdout.write(`Wrote ${file} and the keys beside it.\nNow run: ${ownCommand} serve -c ${file}\n`);
}

/**
 * Creates a configuration, its secrets and its signing key. Does not change existing files.
 * @returns the path of the configuration
 * @throws CommandFailure if there is a configuration already, if a file cannot be created, or if the server name is not
 * valid
 */
export function initialize(
  { serverName, directory, bindAddresses }: InitOptions,
  randomness: Randomness,
): string {
  const file = join(directory, 'homeserver.yaml');
  if (existsSync(file)) {
    throw new CommandFailure(
      `${file} exists already; nothing was changed. For a new server, give another directory with -d, or move ${directory} away`,
    );
  }
  const secret = () => randomString(randomness, 48);
  const text = sampleConfiguration({
    serverName,
    command: ownCommand,
    dataDirectory: resolve(directory),
    macaroonSecretKey: secret(),
    formSecret: secret(),
    ...(bindAddresses && { bindAddresses }),
  });
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    writePrivateFile(file, text);
  } catch (error) {
    throw new CommandFailure(`cannot create the file ${file}: ${fileProblem(error)}`);
  }
  try {
    // Creates the key and secret files that the configuration names.
    readConfiguration([file], { environment: {}, createMissing: { randomness } });
  } catch (error) {
    rmSync(file);
    throw error;
  }
  return file;
}
