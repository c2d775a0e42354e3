import { mkdirSync } from 'node:fs';
import { resolve } from 'node:path';
import type { HearthConfiguration } from '../../../configuration.ts';
import { CacheRegistry } from '../../../kernel/caches/index.ts';
import { systemClock } from '../../../kernel/clock.ts';
import { OutboundHttp } from '../../../kernel/outbound/index.ts';
import { openProviders, type StorageProvider } from '../../../media/index.ts';
import { CommandFailure } from '../../failure.ts';

/** An open store of backups. */
export interface OpenStore {
  readonly provider: StorageProvider;
  close(): Promise<void>;
}

type OutboundOptions = Pick<HearthConfiguration, 'outbound' | 'caches'>;

/**
 * Opens a store of backups.
 * @param address a directory, or `s3://bucket/prefix` with the parameters `endpoint` and `region`; credentials come from the
 * environment
 */
export async function openStore(address: string, { outbound, caches }: OutboundOptions): Promise<OpenStore> {
  const registry = new CacheRegistry(systemClock, caches);
  // The operator has chosen the storage server, so all addresses are allowed, private ones included.
  const config = { ...outbound, ip_range_blacklist: [], ip_range_whitelist: [] };
  const http = new OutboundHttp({ config, clock: systemClock, caches: registry });
  const close = async () => {
    await http.close();
    registry.close();
  };
  const kind = { store_local: true, store_remote: true, store_synchronous: true };
  try {
    const [opened] = await openProviders([{ ...kind, ...moduleOf(address) }], {
      clock: systemClock,
      http,
      environment: process.env,
    });
    if (!opened) throw new Error('no provider was opened');
    return { provider: opened.provider, close };
  } catch (error) {
    await close();
    const reason =
      error instanceof Error ? error.message.replace(/^media_storage_providers\[0\]: /, '') : error;
    throw new CommandFailure(`the store ${address} cannot be used: ${reason}`);
  }
}

/** Returns the storage provider for an address of a store, as an entry of `media_storage_providers` names it. */
function moduleOf(address: string) {
  if (!address.startsWith('s3://')) {
    const directory = resolve(address);
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    return { module: 'file_system', config: { directory } };
  }
  const { host: bucket, pathname, searchParams } = new URL(address);
  const prefix = pathname.replace(/^\/+|\/+$/g, '');
  return {
    module: 's3',
    config: {
      directory: null,
      bucket,
      ...(prefix !== '' && { prefix: `${prefix}/` }),
      endpoint_url: searchParams.get('endpoint'),
      region_name: searchParams.get('region'),
    },
  };
}
