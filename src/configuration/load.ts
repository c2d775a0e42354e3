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
import { aliases } from './aliases.ts';
import { foreignOptions } from './foreign-options.ts';
import { configurationRules } from './rules.ts';

/** The environment's part in a configuration. */
export interface LoadConfigurationOptions {
  /** Environment variables, for cache factors. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Given when the server is about to start: missing key and secret files are then made. */
  readonly createMissing?: { readonly randomness: Randomness };
}

export type LoadedConfiguration = Loaded<typeof sections>;

/**
 * Loads Hearth's configuration from files and directories, later ones overriding the top-level options
 * of earlier ones. Never throws for what is wrong with them: see `errors`, without which `values` is
 * whole. When it returns without errors, every file that the configuration says is needed was readable.
 */
export function loadConfigurationFiles(
  paths: readonly string[],
  surroundings: LoadConfigurationOptions,
): LoadedConfiguration {
  const findings = new Findings();
  const { sources, directory } = readSourceFiles(paths, findings);
  if (findings.errors.length > 0) return { values: {} as HearthConfiguration, ...findings };
  return loadConfigurationSources(sources, { ...surroundings, directory });
}

/** As `loadConfigurationFiles`, from texts; `directory` is where the first of them is. */
export function loadConfigurationSources(
  sources: readonly ConfigurationSource[],
  surroundings: LoadConfigurationOptions & { readonly directory: string },
): LoadedConfiguration {
  const { environment, createMissing, directory } = surroundings;
  return loadConfiguration(sources, sections, {
    transforms: [
      renameAliases(aliases),
      cacheFactorsFromEnvironment(environment),
      defaultSigningKeyPath(directory),
    ],
    rules: configurationRules,
    foreignOptions,
    proven: new Set(provenOptions),
    ...(createMissing && { createMissing }),
  });
}

/** Where no signing key is named, it is beside the configuration, under the name of the server. */
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
