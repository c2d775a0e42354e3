import { accessSync, constants, mkdtempSync, readdirSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A file system in memory, which Linux has. */
const memory = '/dev/shm';

/** Databases are placed in `memory` when at least this many bytes of its file system and of main memory are free. */
const minFree = 6 * 2 ** 30;

/** The name of a folder ends with the id of the process that made it, and six characters that make it unique. */
const folderName = /^hearth-[a-z]+-(\d+)-[A-Za-z0-9]{6}$/;

/**
 * Makes a temporary folder for databases: in memory where enough of it is free (`minFree`), because operations on files
 * take half the time there.
 * @param prefix for example `hearth-sqlite-`
 */
export const makeDatabaseFolder = (prefix: string): string =>
  mkdtempSync(join(hasSpaceInMemory() ? memory : tmpdir(), `${prefix}${process.pid}-`));

/** Removes the folders of processes that were killed before they could remove them, and that would fill the memory. */
export function removeAbandonedFolders(): void {
  for (const parent of [memory, tmpdir()]) {
    for (const name of namesIn(parent)) {
      const [, pid] = folderName.exec(name) ?? [];
      if (pid === undefined || isRunning(Number(pid))) continue;
      rmSync(join(parent, name), { recursive: true, force: true });
    }
  }
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // The process of another user cannot be signalled.
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

function hasSpaceInMemory(): boolean {
  try {
    accessSync(memory, constants.W_OK);
    const { bavail, bsize } = statfsSync(memory);
    return Math.min(bavail * bsize, process.availableMemory()) >= minFree;
  } catch {
    return false;
  }
}
