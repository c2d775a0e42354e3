import { rmSync } from 'node:fs';
import { SpareThreads } from '../../threads/spare-threads.ts';

/** Paths of the database that the thread copies, and of the copy. */
export interface CopyRequest {
  readonly source: string;
  readonly target: string;
}

/** Number of pages that were copied, and of all pages; at first both are 0. */
export interface CopyProgress {
  readonly copied: number;
  readonly total: number;
}

/** Messages of the thread. */
export type FromCopyThread = CopyProgress | 'done' | { readonly failed: string };

const threads = new SpareThreads('./copy-thread', import.meta.url);

/**
 * Copies a SQLite database into a new file while any process may write to it. The copy has everything that was
 * committed before the call, is written in small steps by a thread, and is checked. The write-ahead log of the database
 * grows by all writes until the copy ends.
 * @param signal ends the copy and removes it
 * @throws Error when the target exists, the disk is full, the copy is damaged or the signal aborts; then there is no copy
 */
export async function copySqliteFile(
  request: CopyRequest,
  onProgress: (progress: CopyProgress) => void,
  signal?: AbortSignal,
): Promise<void> {
  const thread = threads.take();
  thread.ref();
  // Whether the thread has created the target: only then a failure removes it.
  let isStarted = false;
  try {
    await new Promise<void>((resolve, reject) => {
      const abort = () => reject(new Error('the copy was cancelled'));
      if (signal?.aborted) return abort();
      signal?.addEventListener('abort', abort, { once: true });
      thread.on('error', reject);
      thread.on('exit', () => reject(new Error('the thread that copies the database has ended')));
      thread.on('message', (message: FromCopyThread) => {
        if (message === 'done') resolve();
        else if ('failed' in message) reject(new Error(message.failed));
        else {
          isStarted = true;
          onProgress(message);
        }
      });
      thread.postMessage(request);
    });
  } catch (error) {
    await thread.terminate();
    if (isStarted) for (const end of ['', '-journal']) rmSync(request.target + end, { force: true });
    throw error;
  } finally {
    thread.removeAllListeners();
    await thread.terminate();
  }
}
