import { statfsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { StartFailure } from '../../start-failure.ts';
import { claimFile } from './claim.ts';

/**
 * Writes a SQLite file again without its free pages. From then on the server can release free pages one by one
 * (`free-space.ts`), whichever `auto_vacuum` mode the file was created with. SQLite copies the file, then writes the
 * copy back in one transaction, so an interruption leaves the file as it was.
 * @param timeout milliseconds to wait for a server that uses the file
 * @returns the number of released bytes
 * @throws DatabaseInUse while a server uses the file
 * @throws StartFailure when the disk has too little space
 */
export function compactSqliteFile(path: string, timeout?: number): number {
  const release = claimFile(path, timeout);
  try {
    const before = statSync(path).size;
    requireSpace(path, 2 * before);
    // The copy is written beside the file, whose disk was checked.
    process.env['SQLITE_TMPDIR'] ??= dirname(path);
    const database = new DatabaseSync(path);
    try {
      database.exec('pragma auto_vacuum = incremental');
      database.exec('vacuum');
      database.exec('pragma wal_checkpoint(truncate)');
    } finally {
      database.close();
    }
    return before - statSync(path).size;
  } finally {
    release();
  }
}

/** Requires free space for the copy and the log, which each take at most as much as the file. @throws StartFailure */
function requireSpace(path: string, bytes: number): void {
  const { bavail, bsize } = statfsSync(dirname(path));
  const free = bavail * bsize;
  if (free >= bytes) return;
  const mebibytes = (count: number) => Math.ceil(count / 2 ** 20);
  throw new StartFailure(
    `${dirname(path)} has ${mebibytes(free)} MiB of free space; compacting ${path} may need ${mebibytes(bytes)} MiB`,
  );
}
