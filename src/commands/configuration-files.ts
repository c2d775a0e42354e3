import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type LoadConfigurationOptions, loadConfigurationFiles } from '../configuration/load.ts';
import type { HearthConfiguration } from '../configuration.ts';
import { formatProblem, type OptionPlaces, type Problem } from '../kernel/config/index.ts';
import { CommandFailure } from './failure.ts';

/** The options `-c` and `--config-path`, which mean the same. */
export interface ConfigFlags {
  readonly config?: readonly string[];
  readonly configPath?: readonly string[];
}

/** The default directory of the configuration: `serve` creates one there, and every command looks for one there. */
export const defaultDirectory = 'data';

const defaultConfigPath = join(defaultDirectory, 'homeserver.yaml');

/** Returns the given paths, or else the default path if it exists. */
export function configPaths({ config = [], configPath = [] }: ConfigFlags): readonly string[] {
  const given = [...config, ...configPath];
  if (given.length > 0) return given;
  return existsSync(defaultConfigPath) ? [defaultConfigPath] : [];
}

export interface ReadConfiguration {
  readonly values: HearthConfiguration;
  /** Files and lines of the given options. */
  readonly origins: OptionPlaces;
  /** Problems that the operator should know, but that do not prevent the start of the server. */
  readonly warnings: readonly Problem[];
  readonly notices: readonly Problem[];
}

/** @throws CommandFailure that lists all errors in the files */
export function readConfiguration(
  paths: readonly string[],
  options: LoadConfigurationOptions,
): ReadConfiguration {
  const { values, origins, errors, warnings, notices } = loadConfigurationFiles(paths, options);
  if (errors.length > 0) {
    throw new CommandFailure(`the configuration is not valid:\n${errors.map(formatProblem).join('\n')}`);
  }
  return { values, origins, warnings, notices };
}
