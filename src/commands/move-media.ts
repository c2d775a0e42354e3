import { resolve } from 'node:path';
import { CacheRegistry } from '../kernel/caches/index.ts';
import { systemClock } from '../kernel/clock.ts';
import { OutboundHttp } from '../kernel/outbound/index.ts';
import { type MoveProgress, moveMedia, openProviders } from '../media/index.ts';
import { Progress } from './administration/progress.ts';
import type { CommandContext } from './command-context.ts';
import { type ConfigFlags, configPaths, readConfiguration } from './configuration-files.ts';
import { CommandFailure } from './failure.ts';

export interface MoveMediaFlags extends ConfigFlags {
  /** Also keeps the files on this machine. */
  readonly keep?: boolean;
}

/** `hearth media move`: moves the media of this machine to the storage providers. The server may be running. */
export async function moveMediaToProviders(
  flags: MoveMediaFlags,
  { stdout, stderr }: Pick<CommandContext, 'stdout' | 'stderr'> = process,
): Promise<void> {
  const paths = configPaths(flags);
  if (paths.length === 0) throw new CommandFailure('give the configuration with -c');
  const { media, outbound, caches } = readConfiguration(paths, { environment: process.env }).values;
  const progress = new Progress(stderr);
  const registry = new CacheRegistry(systemClock, caches);
  // The operator has chosen the storage server, so all addresses are allowed, private ones included.
  const config = { ...outbound, ip_range_blacklist: [], ip_range_whitelist: [] };
  const http = new OutboundHttp({ config, clock: systemClock, caches: registry });
  try {
    const list = media.media_storage_providers;
    const providers = await openProviders(list, { clock: systemClock, http, environment: process.env });
    if (!providers.some(({ storesLocal, storesRemote }) => storesLocal || storesRemote))
      throw new CommandFailure(
        'no provider of media_storage_providers has store_local or store_remote: no provider can take the media',
      );
    const directory = resolve(media.media_store_path);
    const report = ({ files, totalFiles, sentBytes }: MoveProgress) =>
      progress.show(files, totalFiles, `${files} of ${totalFiles} files, ${mebibytes(sentBytes)} MiB sent`);
    const { files, sentBytes } = await moveMedia({
      directory,
      providers,
      keeps: flags.keep === true,
      report,
    });
    progress.end();
    const done = flags.keep ? 'stored' : 'moved';
    stdout.write(`${files} files are ${done}; ${sentBytes} bytes were sent.\n`);
  } catch (error) {
    progress.end();
    if (error instanceof CommandFailure) throw error;
    const why = error instanceof Error ? error.message : String(error);
    throw new CommandFailure(`${why}\nNothing is lost: call the command again to continue`);
  } finally {
    await http.close();
    registry.close();
  }
}

const mebibytes = (bytes: number) => Math.floor(bytes / 1_048_576);
