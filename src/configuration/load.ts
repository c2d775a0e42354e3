import { join } from 'node:path';
import { type HearthConfiguration, sections } from '../configuration.ts';
import { cacheFactorsFromEnvironment } from '../kernel/caches/index.ts';
import {
  type ConfigurationSource,
  type DocumentTransform,
  Findings,
  type Loaded,
  loadConfiguration,
  readSourceFiles,
  renameAliases,
  scalarNode,
} from '../kernel/config/index.ts';
import { provenOptions } from '../kernel/config/proven-options.ts';
import type { Randomness } from '../kernel/randomness.ts';
import { absoluteModulePaths } from './absolute-module-paths.ts';
import { aliases } from './aliases.ts';
import { features } from './features.ts';
import { foreignOptions } from './foreign-options.ts';
import { configurationRules } from './rules.ts';

/** The inputs of a configuration besides its files. */
export interface LoadConfigurationOptions {
  /** Environment variables, for cache factors. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Set when the server is about to start: creates missing key and secret files. */
  readonly createMissing?: { readonly randomness: Randomness };
}

export type LoadedConfiguration = Loaded<typeof sections>;

/**
 * Loads Hearth's configuration from files and directories; later files override top-level options of earlier files.
 * Does not throw for errors in these files: `errors` lists them. Only when `errors` is empty, `values` is complete and
 * every file that the configuration names could be read.
 */
export function loadConfigurationFiles(
  paths: readonly string[],
  options: LoadConfigurationOptions,
): LoadedConfiguration {
  const findings = new Findings();
  const { sources, directory } = readSourceFiles(paths, findings);
  if (findings.errors.length > 0) {
    return { values: {} as HearthConfiguration, origins: new Map(), ...findings };
  }
  return loadConfigurationSources(sources, { ...options, directory });
}

/** Like `loadConfigurationFiles`, from texts; `directory` is the directory of the first file. */
export function loadConfigurationSources(
  sources: readonly ConfigurationSource[],
  options: LoadConfigurationOptions & { readonly directory: string },
): LoadedConfiguration {
  const { environment, createMissing, directory } = options;
  return loadConfiguration(sources, sections, {
    transforms: [
      renameAliases(aliases),
      cacheFactorsFromEnvironment(environment),
      defaultSigningKeyPath(directory),
      absoluteModulePaths(directory),
    ],
    rules: configurationRules,
    foreignOptions,
    proven: new Set(provenOptions),
    features,
    ...(createMissing && { createMissing }),
  });
}

/**
 * Sets `signing_key_path`, if it is not set, to a file next to the configuration. The file is named after the server.
 */
function defaultSigningKeyPath(directory: string): DocumentTransform {
  return (document) => {
    const given = document.entries.get('signing_key_path');
    const serverName = document.entries.get('server_name')?.node;
    const unset = given === undefined || (given.node.kind === 'scalar' && given.node.value === null);
    if (!unset || serverName?.kind !== 'scalar' || typeof serverName.value !== 'string') return document;
    const node = scalarNode(join(directory, `${serverName.text}.signing.key`));
    return { ...document, entries: new Map(document.entries).set('signing_key_path', { node }) };
  };
}
