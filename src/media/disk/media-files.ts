import type { Readable } from 'node:stream';
import { LoadOnce } from '../../kernel/load-once.ts';
import { mediaNotFound } from '../media-address.ts';
import type { MediaFile } from '../media-file.ts';
import type { ProviderStorage } from '../providers/provider-storage.ts';
import { streamOfPieces } from '../stream-of-pieces.ts';
import type { MediaStore } from './media-store.ts';

/** Finds stored files on the disk, and what is missing there at the storage providers. */
export class MediaFiles {
  readonly disk: MediaStore;
  readonly #elsewhere: Pick<ProviderStorage, 'isUsed' | 'open'>;
  readonly #running = new LoadOnce<string, void>();

  constructor(disk: MediaStore, elsewhere: Pick<ProviderStorage, 'isUsed' | 'open'>) {
    this.disk = disk;
    this.#elsewhere = elsewhere;
  }

  /** Whether a file is on the disk, completely. */
  async isOnDisk({ area, fileId, size }: MediaFile): Promise<boolean> {
    return (await this.disk.sizeOf(area, fileId)) === size;
  }

  /** Whether a file is on the disk, or may be at a provider. */
  async mayExist(file: MediaFile): Promise<boolean> {
    return (await this.isOnDisk(file)) || this.#elsewhere.isUsed;
  }

  /**
   * Opens a file at a provider. While it is read, it is stored on the disk, too. Its last bytes come only when all bytes
   * are those that were stored.
   * @returns `undefined` when no provider has it
   */
  async restore(file: MediaFile): Promise<Readable | undefined> {
    const content = await this.#elsewhere.open(file.area, file.fileId);
    return content && streamOfPieces(this.disk.restoring(file, content), content);
  }

  /** Whether a file is on the disk, or can be brought there from a provider, which this does. */
  async ensure(file: MediaFile): Promise<boolean> {
    if (await this.isOnDisk(file)) return true;
    if (!this.#elsewhere.isUsed) return false;
    const work = async () => {
      const content = await this.restore(file);
      for await (const _ of content ?? []);
    };
    await this.#running.run(`${file.area} ${file.fileId}`, work);
    return this.isOnDisk(file);
  }

  /** @throws MatrixError M_NOT_FOUND for a file that is neither on the disk nor at a provider */
  async require(file: MediaFile): Promise<void> {
    if (!(await this.ensure(file))) throw mediaNotFound();
  }
}
