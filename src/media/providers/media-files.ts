import type { Readable } from 'node:stream';
import { LoadOnce } from '../../kernel/load-once.ts';
import type { MediaStore } from '../disk/media-store.ts';
import { mediaNotFound } from '../media-address.ts';
import type { MediaFile } from '../media-file.ts';
import { streamOfPieces } from '../stream-of-pieces.ts';
import type { ProviderStorage } from './provider-storage.ts';

/** Finds stored files on the disk, or else at the storage providers. */
export class MediaFiles {
  readonly disk: MediaStore;
  readonly #providerStorage: Pick<ProviderStorage, 'isUsed' | 'open'>;
  /** Files that are being restored from providers, by area and id of the file. */
  readonly #running = new LoadOnce<string, void>();

  constructor(disk: MediaStore, providerStorage: Pick<ProviderStorage, 'isUsed' | 'open'>) {
    this.disk = disk;
    this.#providerStorage = providerStorage;
  }

  /** Reports whether the complete file is on the disk. */
  async isOnDisk({ area, fileId, size }: MediaFile): Promise<boolean> {
    return (await this.disk.sizeOf(area, fileId)) === size;
  }

  /** Reports whether a file is on the disk, or may be at a provider. */
  async mayExist(file: MediaFile): Promise<boolean> {
    return (await this.isOnDisk(file)) || this.#providerStorage.isUsed;
  }

  /** Reports whether a file was deleted. A file that is missing on the disk may have been moved to a provider. */
  async isDeleted({ area, fileId }: MediaFile): Promise<boolean> {
    if ((await this.disk.sizeOf(area, fileId)) !== undefined) return false;
    return !this.#providerStorage.isUsed || !(await this.disk.mayHaveRow(area, fileId));
  }

  /**
   * Opens a file at a provider, and restores it on the disk while it is read. The stream fails before its last bytes
   * if the provider returns bytes that differ from the stored ones.
   * @param isNeeded whether the stream fails when the file cannot be restored
   * @returns `undefined` when no provider has the file
   */
  async restore(file: MediaFile, isNeeded = false): Promise<Readable | undefined> {
    const content = await this.#providerStorage.open(file.area, file.fileId);
    return content && streamOfPieces(this.disk.restoring(file, content, isNeeded), content);
  }

  /** Restores a file from a provider if it is missing on the disk. @returns whether it is on the disk */
  async ensure(file: MediaFile): Promise<boolean> {
    if (await this.isOnDisk(file)) return true;
    if (!this.#providerStorage.isUsed) return false;
    const work = async () => {
      const content = await this.restore(file, true);
      for await (const _ of content ?? []);
    };
    await this.#running.run(`${file.area} ${file.fileId}`, work);
    return this.isOnDisk(file);
  }

  /** Makes sure that a file is on the disk. @throws MatrixError M_NOT_FOUND when neither disk nor providers have it */
  async require(file: MediaFile): Promise<void> {
    if (!(await this.ensure(file))) throw mediaNotFound();
  }
}
