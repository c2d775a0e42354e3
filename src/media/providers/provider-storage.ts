import type { Readable } from 'node:stream';
import type { Clock } from '../../kernel/clock.ts';
import type { AnyWriter, Database } from '../../kernel/database/index.ts';
import type { Jobs } from '../../kernel/jobs/index.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import { unknown } from '../../protocol/index.ts';
import type { MediaStore, StoredFile } from '../disk/media-store.ts';
import { placeOf } from '../disk/places.ts';
import type { MediaArea } from '../media-file.ts';
import { isFileStored } from '../store.ts';
import type { OpenedProvider } from './open-providers.ts';

export interface ProviderStorageDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly jobs: Jobs;
  readonly log: Logger;
  readonly disk: MediaStore;
  readonly providers: readonly OpenedProvider[];
}

/** Kind of the jobs that store files in a provider. */
const storing = 'media/store-in-provider';

/** Kind of the jobs that delete files in all providers. */
const deleting = 'media/delete-in-providers';

/** The payload of a job that stores a file. */
interface Storing {
  [member: string]: string | number;
  readonly provider: string;
  readonly area: MediaArea;
  readonly fileId: string;
  readonly size: number;
  readonly sha256: string;
}

/** The payload of a job that deletes files. */
interface Deleting {
  [member: string]: string | string[];
  readonly area: MediaArea;
  readonly fileIds: string[];
}

/** Maximum milliseconds between two attempts to store or delete a file: a provider may be unavailable for days. */
const maxBackoff = 15 * 60_000;

/** Returns the milliseconds to wait after a failed attempt. */
const backoff = (attempt: number) => Math.min(1_000 * 2 ** attempt, maxBackoff);

/** Number of attempts after which a file is given up: with this backoff, after ten days. */
const maxAttempts = 1_000;

/** Returns the path of a file, which is the same at all providers. */
export const pathAtProvider = (area: MediaArea, fileId: string) => `${area}/${placeOf(fileId)}`;

/** Stores media at the providers of `media_storage_providers`, and reads from them the files that this server lacks. */
export class ProviderStorage {
  readonly #deps: ProviderStorageDeps;

  constructor(deps: ProviderStorageDeps) {
    this.#deps = deps;
    const { jobs } = deps;
    jobs.register<Storing>(storing, {
      run: ({ payload }) => this.#store(payload),
      backoff,
      maxAttempts,
    });
    jobs.register<Deleting>(deleting, {
      run: ({ payload }) => this.#delete(payload),
      backoff,
      maxAttempts,
    });
  }

  /** Whether a storage provider is configured. */
  get isUsed(): boolean {
    return this.#deps.providers.length > 0;
  }

  /**
   * Stores an upload of a local user at the providers with `store_synchronous`.
   * @throws MatrixError M_UNKNOWN (503) when one of these providers fails
   */
  async storeNow(file: StoredFile): Promise<void> {
    const { disk, log } = this.#deps;
    for (const { name, provider } of this.#providersOf('local', true)) {
      const { fileId, size, sha256 } = file;
      try {
        await provider.store(pathAtProvider('local', fileId), {
          source: disk.pathOf('local', fileId),
          size,
          sha256,
        });
      } catch (error) {
        log.error({ err: error, provider: name }, 'An upload was refused, because a storage provider failed');
        throw unknown('The server cannot store files at the moment', 503);
      }
    }
  }

  /** Deletes an upload at the providers of `storeNow`, after it was refused. Failures are only logged. */
  async discard({ fileId }: StoredFile): Promise<void> {
    for (const { name, provider } of this.#providersOf('local', true)) {
      await provider
        .delete(pathAtProvider('local', fileId))
        .catch((error: unknown) =>
          this.#deps.log.warn({ err: error, provider: name, fileId }, 'Failed to delete a refused upload'),
        );
    }
  }

  /** Schedules jobs that store a file at the providers that `storeNow` leaves out. */
  async schedule(writer: AnyWriter, area: MediaArea, { fileId, size, sha256 }: StoredFile): Promise<void> {
    const { jobs, clock } = this.#deps;
    for (const { name } of this.#providersOf(area, false)) {
      const payload: Storing = { provider: name, area, fileId, size, sha256 };
      await jobs.schedule(writer, { kind: storing, key: `${fileId} ${name}`, payload, runAt: clock.now() });
    }
  }

  /** Schedules a job that deletes files at all providers. */
  async scheduleDeletion(writer: AnyWriter, area: MediaArea, fileIds: readonly string[]): Promise<void> {
    const { jobs, clock } = this.#deps;
    if (!this.isUsed || fileIds.length === 0) return;
    const payload: Deleting = { area, fileIds: [...fileIds] };
    await jobs.schedule(writer, { kind: deleting, payload, runAt: clock.now() });
  }

  /**
   * Opens a file at the first provider that has it; `undefined` when no provider has it.
   * @throws MatrixError M_UNKNOWN (503) when no provider has the file and at least one fails
   */
  async open(area: MediaArea, fileId: string): Promise<Readable | undefined> {
    const { providers, log } = this.#deps;
    let hasFailed = false;
    for (const { name, provider } of providers) {
      try {
        const content = await provider.open(pathAtProvider(area, fileId));
        if (content !== undefined) return content;
      } catch (error) {
        hasFailed = true;
        log.error({ err: error, provider: name, fileId }, 'A storage provider failed to return a file');
      }
    }
    if (hasFailed) throw unknown('The storage of this file cannot be reached at the moment', 503);
    return undefined;
  }

  #providersOf(area: MediaArea, isSynchronous: boolean): readonly OpenedProvider[] {
    return this.#deps.providers.filter(
      (provider) =>
        (area === 'local' ? provider.storesLocal : provider.storesRemote) &&
        // Only uploads of local users wait for a provider.
        (provider.isSynchronous && area === 'local') === isSynchronous,
    );
  }

  async #store({ provider: name, area, fileId, size, sha256 }: Storing): Promise<void> {
    const { providers, disk, database, log } = this.#deps;
    const target = providers.find((provider) => provider.name === name);
    if (target === undefined) {
      log.warn(
        { provider: name, area, fileId },
        'A file is not copied, because its storage provider is not in media_storage_providers any more',
      );
      return;
    }
    const path = pathAtProvider(area, fileId);
    const isKept = () => isFileStored(database.reader(), area, fileId);
    if ((await isKept()) && (await disk.sizeOf(area, fileId)) === size)
      await target.provider.store(path, { source: disk.pathOf(area, fileId), size, sha256 });
    // The file may have been deleted while this attempt sent it, or while an earlier attempt, which a crash ended, sent
    // it. It may then arrive at the provider after the deletion.
    if (!(await isKept())) await target.provider.delete(path);
  }

  async #delete({ area, fileIds }: Deleting): Promise<void> {
    for (const { provider } of this.#deps.providers) {
      for (const fileId of fileIds) await provider.delete(pathAtProvider(area, fileId));
    }
  }
}
