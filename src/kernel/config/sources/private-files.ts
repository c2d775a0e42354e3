import { closeSync, fsyncSync, openSync, rmSync, writeFileSync } from 'node:fs';

/**
 * Writes a new file, readable by its owner only, and flushes it to disk. Deletes the file when it cannot be written
 * completely, because the next start would read it.
 * @throws Error when the file exists, since nothing is ever overwritten, or cannot be written
 */
export function writePrivateFile(file: string, text: string): void {
  const descriptor = openSync(file, 'wx', 0o600);
  try {
    writeFileSync(descriptor, text);
    fsyncSync(descriptor);
  } catch (error) {
    rmSync(file, { force: true });
    throw error;
  } finally {
    closeSync(descriptor);
  }
}

const problems: Readonly<Record<string, string>> = {
  ENOENT: 'it does not exist',
  EACCES: 'permission is denied',
  EEXIST: 'it already exists',
  EISDIR: 'it is a directory',
  ENOTDIR: 'a part of its path is not a directory',
  EROFS: 'the file system is read-only',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is exhausted',
};

/** Describes why a file cannot be read or written, for operators. */
export function fileProblem(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return problems[code] ?? (code || 'for an unknown reason');
}
