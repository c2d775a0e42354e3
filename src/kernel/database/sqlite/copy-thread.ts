import { closeSync, fdatasyncSync, openSync } from 'node:fs';
import { backup, DatabaseSync } from 'node:sqlite';
import { parentPort } from 'node:worker_threads';
import { systemClock } from '../../clock.ts';
import type { CopyRequest, FromCopyThread } from './copy.ts';

/** Pages (4 KiB) of one step. */
const pagesPerStep = 256;

/** Pages after which the copy is flushed, so that the commits of the server never wait for a large flush. */
const pagesPerFlush = 4_096;

/** Minimum pause between two steps in milliseconds. A pause is at least as long as the step before it. */
const minPause = 1;

const port = parentPort;
if (!port) throw new Error('this file runs in a worker thread');
const post = (message: FromCopyThread): void => port.postMessage(message);
/** Never changes: `Atomics.wait` on it blocks this thread for the time of a pause. */
const pausing = new Int32Array(new SharedArrayBuffer(4));

port.once('message', (request: CopyRequest) => {
  copy(request).then(
    () => post('done'),
    (error: unknown) => post({ failed: error instanceof Error ? error.message : String(error) }),
  );
});

async function copy({ source, target }: CopyRequest): Promise<void> {
  const from = new DatabaseSync(source, { readOnly: true, timeout: 15_000 });
  const fd = openSync(target, 'wx', 0o600);
  post({ copied: 0, total: 0 });
  try {
    // A read transaction shows one state of the database until it ends. Without it, the copy would begin again at each
    // write of the server.
    from.exec('begin');
    from.prepare('select count(*) from sqlite_schema').get();
    let began = systemClock.monotonic();
    let flushedAt = 0;
    await backup(from, target, {
      rate: pagesPerStep,
      progress: ({ totalPages, remainingPages }) => {
        const copied = totalPages - remainingPages;
        if (copied - flushedAt >= pagesPerFlush) {
          fdatasyncSync(fd);
          flushedAt = copied;
        }
        post({ copied, total: totalPages });
        Atomics.wait(pausing, 0, 0, Math.max(minPause, systemClock.monotonic() - began));
        began = systemClock.monotonic();
      },
    });
    from.exec('rollback');
  } finally {
    from.close();
    closeSync(fd);
  }
  check(target);
}

/**
 * Turns off the write-ahead log of the copy, so that it is a single file, and checks its integrity.
 * @throws Error when the copy is damaged
 */
function check(target: string): void {
  const copied = new DatabaseSync(target);
  try {
    copied.exec('pragma journal_mode = delete');
    const row = copied.prepare('pragma integrity_check(1)').get();
    if (row?.['integrity_check'] !== 'ok') {
      throw new Error(`the copy is damaged, and so may be the database: ${row?.['integrity_check']}`);
    }
  } finally {
    copied.close();
  }
}
