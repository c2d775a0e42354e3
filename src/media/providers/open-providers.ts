import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Clock } from '../../kernel/clock.ts';
import type { OutboundHttp } from '../../kernel/outbound/index.ts';
import { keepObjectPrototype } from '../../kernel/process/index.ts';
import { startStep } from '../../kernel/start-failure.ts';
import { FileSystemProvider } from './file-system-provider.ts';
import type { StorageProvider } from './storage-provider.ts';

/** An item of `media_storage_providers`. */
export interface ProviderOptions {
  readonly module: string;
  readonly store_local: boolean;
  readonly store_remote: boolean;
  readonly store_synchronous: boolean;
  readonly config: Readonly<Record<string, unknown>> & { readonly directory: string | null };
}

/** A provider, and the kinds of media that it stores. */
export interface OpenedProvider {
  /**
   * The name of the provider in logs and jobs. For the modules of Hearth it says where files are stored, so that it
   * stays the same when items of the configuration change their order. See `nameOf` for other modules.
   */
  readonly name: string;
  readonly provider: StorageProvider;
  readonly storesLocal: boolean;
  readonly storesRemote: boolean;
  /** Whether uploads of local users wait until the provider has stored them. */
  readonly isSynchronous: boolean;
}

export interface ProviderEnvironment {
  readonly clock: Clock;
  /** Sends requests to storage providers. Blocks no address, because the operator has chosen the providers. */
  readonly http: OutboundHttp;
  /** Environment variables. */
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/**
 * The names of Hearth's storage modules, and the names of the reference server's modules, so that configurations of the
 * reference server can be used.
 */
const fileSystemModules = new Set([
  'file_system',
  'synapse.media.storage_provider.FileStorageProviderBackend',
  'synapse.rest.media.v1.storage_provider.FileStorageProviderBackend',
  'synapse.rest.media.v1.storage_provider',
]);
const s3Modules = new Set(['s3', 's3_storage_provider.S3StorageProviderBackend']);

/** Opens the providers of `media_storage_providers`. @throws StartFailure that names the item that cannot be used */
export async function openProviders(
  list: readonly ProviderOptions[],
  environment: ProviderEnvironment,
): Promise<OpenedProvider[]> {
  const opened: OpenedProvider[] = [];
  for (const [index, options] of list.entries()) {
    const provider = await startStep(`media_storage_providers[${index}]`, () =>
      openProvider(options, environment),
    );
    opened.push({
      name: nameOf(options, index),
      provider,
      storesLocal: options.store_local,
      storesRemote: options.store_remote,
      isSynchronous: options.store_synchronous,
    });
  }
  return opened;
}

/**
 * Returns the name of a provider. For the modules of Hearth it contains the place where files are stored. That place is
 * not known for other modules, so their names contain the position in the configuration.
 */
function nameOf({ module, config }: ProviderOptions, index: number): string {
  if (fileSystemModules.has(module)) return `file_system ${config.directory}`;
  if (!s3Modules.has(module)) return `${index} ${module}`;
  const { endpoint_url: endpoint = '', bucket = '', prefix = '' } = config;
  return `s3 ${endpoint} ${bucket} ${prefix}`;
}

async function openProvider(
  { module, config }: ProviderOptions,
  { environment, ...deps }: ProviderEnvironment,
): Promise<StorageProvider> {
  if (fileSystemModules.has(module)) {
    if (config.directory === null) throw new Error('config.directory is needed');
    const provider = new FileSystemProvider(config.directory);
    await provider.sweep(deps.clock.now());
    return provider;
  }
  if (s3Modules.has(module)) {
    const { S3Provider } = await import('./s3-provider.ts');
    const { s3Options } = await import('./s3-options.ts');
    return new S3Provider({ ...deps, options: s3Options(config, environment) });
  }
  return openOwnProvider(module, config);
}

/** Loads a storage module that the operator has named: the path of a file, or a package. */
async function openOwnProvider(module: string, config: ProviderOptions['config']): Promise<StorageProvider> {
  const isFilePath = /^[./]/.test(module);
  keepObjectPrototype();
  const loaded = (await import(isFilePath ? pathToFileURL(resolve(module)).href : module)) as {
    default?: unknown;
  };
  if (typeof loaded.default !== 'function') throw new Error(`${module} exports no function by default`);
  const provider = (await loaded.default(config)) as Partial<StorageProvider> | undefined;
  for (const name of ['store', 'open', 'delete'] as const) {
    if (typeof provider?.[name] !== 'function')
      throw new Error(`the storage of ${module} has no method ${name}`);
  }
  return provider as StorageProvider;
}
