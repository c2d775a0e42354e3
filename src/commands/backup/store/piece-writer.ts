import { createHash, hash } from 'node:crypto';
import { mkdirSync, rmSync } from 'node:fs';
import { open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import type { StorageProvider } from '../../../media/index.ts';
import { CommandFailure } from '../../failure.ts';
import type { BackupFile } from '../manifest.ts';
import { piecePath, type StoredFile } from './stored-backup.ts';

/**
 * Bytes of a piece; the last piece of a file may be smaller. Unchanged pages of a SQLite file stay at their offsets, so
 * only pieces with changed pages are stored again. Smaller pieces would need more requests.
 */
const pieceBytes = 512 * 1024;

/** Maximum number of pieces that are sent at the same time. */
const maxConcurrent = 4;

/** Stores files in pieces. Pieces that the store is known to have are not sent again. */
export class PieceWriter {
  readonly #provider: StorageProvider;
  readonly #known: Set<string>;
  readonly #work: string;
  readonly #sending = new Set<Promise<void>>();
  #failure: unknown;
  #number = 0;
  /** Bytes that were sent. */
  sentBytes = 0;

  /** @param known hashes of pieces in the store @param work a directory for the pieces that are being sent */
  constructor(provider: StorageProvider, known: ReadonlySet<string>, work: string) {
    this.#provider = provider;
    this.#known = new Set(known);
    this.#work = work;
    mkdirSync(work, { recursive: true, mode: 0o700 });
  }

  /**
   * Reads a file and stores its pieces. The pieces may still be on their way when the promise resolves: see `settled`.
   * @param path of the file in the backup
   * @param source path of the file to read
   */
  async add(path: string, source: string): Promise<StoredFile> {
    const file = await open(source);
    const whole = createHash('sha256');
    const pieces: string[] = [];
    let size = 0;
    try {
      for (;;) {
        const { bytesRead, buffer: bytes } = await file.read(Buffer.alloc(pieceBytes), 0, pieceBytes, size);
        if (bytesRead === 0) break;
        const piece = bytes.subarray(0, bytesRead);
        size += bytesRead;
        whole.update(piece);
        pieces.push(await this.#addPiece(piece));
      }
    } finally {
      await file.close();
    }
    return { path, size, sha256: whole.digest('hex'), pieces };
  }

  /** Resolves when all pieces are stored; rejects with the first error of storing a piece. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#sending);
    this.#throwFailure();
  }

  async #addPiece(piece: Buffer): Promise<string> {
    this.#throwFailure();
    const sha256 = hash('sha256', piece);
    if (this.#known.has(sha256)) return sha256;
    this.#known.add(sha256);
    while (this.#sending.size >= maxConcurrent) await Promise.race(this.#sending);
    const sending: Promise<void> = this.#send(sha256, piece)
      .catch((error: unknown) => {
        this.#failure ??= error;
      })
      .finally(() => this.#sending.delete(sending));
    this.#sending.add(sending);
    return sha256;
  }

  /** Stores a piece and reads it back. */
  async #send(sha256: string, piece: Buffer): Promise<void> {
    this.#number += 1;
    const source = join(this.#work, `piece-${this.#number}`);
    try {
      // `wx` follows no symbolic link: another user may own the work directory while this command runs as root.
      await writeFile(source, piece, { mode: 0o600, flag: 'wx' });
      await this.#provider.store(piecePath(sha256), { source, size: piece.length, sha256 });
      await readPiece(this.#provider, sha256);
      this.sentBytes += piece.length;
    } finally {
      rmSync(source, { force: true });
    }
  }

  #throwFailure(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }
}

/** Reads a piece. @throws CommandFailure when the piece is missing or damaged */
export async function readPiece(provider: StorageProvider, sha256: string): Promise<Buffer> {
  const stream = await provider.open(piecePath(sha256));
  if (stream === undefined) throw new CommandFailure(`the piece ${sha256} is missing in the store`);
  const piece = await buffer(stream);
  if (hash('sha256', piece) !== sha256)
    throw new CommandFailure(`the piece ${sha256} of the store is damaged`);
  return piece;
}

/** Returns the entry of a manifest for a stored file. */
export const backupFileOf = ({ path, size, sha256 }: StoredFile): BackupFile => ({ path, size, sha256 });
