import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type LoadConfigurationOptions, loadConfigurationFiles } from '../configuration/load.ts';
import type { HearthConfiguration } from '../configuration.ts';
import { formatProblem, type Problem } from '../kernel/config/index.ts';
import { CommandFailure } from './failure.ts';

/** The options `-c` and `--config-path`, which mean the same. */
export interface ConfigFlags {
  readonly config?: readonly string[];
  readonly configPath?: readonly string[];
}

/** Where `serve` makes a configuration and where every command looks for one. */
export const defaultDirectory = 'data';

const defaultConfigPath = join(defaultDirectory, 'homeserver.yaml');

/** The paths that were given, or else the default one when it exists. */
export function configPaths({ config = [], configPath = [] }: ConfigFlags): readonly string[] {
  const given = [...config, ...configPath];
  if (given.length > 0) return given;
  return existsSync(defaultConfigPath) ? [defaultConfigPath] : [];
}

export interface ReadConfiguration {
  readonly values: HearthConfiguration;
  /** What the operator should know; it does not keep the server from starting. */
  readonly warnings: readonly Problem[];
  readonly notices: readonly Problem[];
}

/** @throws CommandFailure that lists everything that is wrong with the files */
export function readConfiguration(
  paths: readonly string[],
  surroundings: LoadConfigurationOptions,
): ReadConfiguration {
  const { values, errors, warnings, notices } = loadConfigurationFiles(paths, surroundings);
  if (errors.length > 0) {
    throw new CommandFailure(`the configuration is not valid:\n${errors.map(formatProblem).join('\n')}`);
  }
  return { values, warnings, notices };
}
