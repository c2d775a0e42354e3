import { createHash, type Hash } from 'node:crypto';
import type { open as openFile } from 'node:fs/promises';
import { asStorageError } from './storage-error.ts';

type FileHandle = Awaited<ReturnType<typeof openFile>>;

export interface WrittenFile {
  /** Size in bytes. */
  readonly size: number;
  /** In hexadecimal. */
  readonly sha256: string;
  /** The first bytes, at most `beginningLength`. */
  readonly beginning: Uint8Array;
}

/** Number of first bytes that are needed to distinguish an image from other content. */
const beginningLength = 16;

/** Number of bytes that are collected before they are hashed and written. */
const batchBytes = 512 * 1024;

/** Buffers for batches that no file uses at the moment. */
const freeBuffers: Buffer[] = [];

/** Maximum number of `freeBuffers`. */
const maxFreeBuffers = 8;

/**
 * Writes a new file and flushes it to the disk. Frees the memory of the chunks: the caller must not use a chunk after
 * it was written.
 * @param place moves the written file to its final name. Called before the flush, because many file systems write the
 * bytes and the name in one flush
 * @throws errors of `content`; StorageError when the disk fails
 */
export async function writeNewFile(
  open: typeof openFile,
  path: string,
  content: AsyncIterable<Uint8Array>,
  place: () => Promise<void>,
): Promise<WrittenFile> {
  const handle = await open(path, 'wx', 0o640).catch((error: unknown) => {
    throw asStorageError(error);
  });
  const hash = createHash('sha256');
  try {
    const { size, beginning } = await writeAll(handle, content, hash);
    try {
      await place();
      await handle.sync();
    } catch (error) {
      throw asStorageError(error);
    }
    return { size, sha256: hash.digest('hex'), beginning };
  } finally {
    await handle.close();
  }
}

async function writeAll(
  handle: FileHandle,
  content: AsyncIterable<Uint8Array>,
  hash: Hash,
): Promise<{ readonly size: number; readonly beginning: Uint8Array }> {
  const batch = freeBuffers.pop() ?? Buffer.allocUnsafeSlow(batchBytes);
  let size = 0;
  let batched = 0;
  let beginning = Buffer.alloc(0);
  const flush = async () => {
    const bytes = batch.subarray(0, batched);
    batched = 0;
    hash.update(bytes);
    await writeChunk(handle, bytes);
  };
  for await (const chunk of content) {
    if (size < beginningLength)
      beginning = Buffer.concat([beginning, chunk.subarray(0, beginningLength - size)]);
    size += chunk.length;
    for (let from = 0; from < chunk.length; ) {
      const copied = chunk.subarray(from, from + batchBytes - batched);
      batch.set(copied, batched);
      batched += copied.length;
      from += copied.length;
      if (batched === batchBytes) await flush();
    }
    release(chunk);
  }
  await flush();
  // A buffer of a failed write is not used again, because the write may still be running.
  if (freeBuffers.length < maxFreeBuffers) freeBuffers.push(batch);
  return { size, beginning };
}

/** Frees the memory of a chunk that has its own buffer, so that the garbage collector runs less often. */
function release({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength && byteLength > 0) buffer.transfer(0);
}

/** Writes a chunk. @throws StorageError */
export async function writeChunk(handle: FileHandle, chunk: Uint8Array): Promise<void> {
  for (let rest = chunk; rest.length > 0; ) {
    const { bytesWritten } = await handle.write(rest).catch((error: unknown) => {
      throw asStorageError(error);
    });
    rest = rest.subarray(bytesWritten);
  }
}
