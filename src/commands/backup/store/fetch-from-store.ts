import { resolve } from 'node:path';
import { loadConfigurationSources } from '../../../configuration/load.ts';
import { type ConfigFlags, configPaths, readConfiguration } from '../../configuration-files.ts';
import { fetchBackup } from './fetch-backup.ts';
import { openStore } from './open-store.ts';

export interface FetchFlags extends ConfigFlags {
  /** Address of the store. */
  readonly store: string;
  /** Name of a backup; by default the newest. */
  readonly at?: string;
}

/** Fetches a backup from a store into a directory. `hearth restore` restores it from there. */
export async function fetchFromStore(directory: string, flags: FetchFlags): Promise<void> {
  const paths = configPaths(flags);
  const values =
    paths.length > 0 ? readConfiguration(paths, { environment: process.env }).values : defaultConfiguration();
  const { provider, close } = await openStore(flags.store, values);
  try {
    await fetchBackup(provider, resolve(directory), flags.at);
  } finally {
    await close();
  }
}

/** Returns default options for requests to the store, for a server whose configuration is lost until it is restored. */
const defaultConfiguration = () =>
  loadConfigurationSources([{ file: 'defaults', text: 'server_name: unknown.invalid' }], {
    environment: process.env,
    directory: process.cwd(),
  }).values;
