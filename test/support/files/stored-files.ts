import { readdirSync } from 'node:fs';
import { join } from 'node:path';

/** Returns the paths of all files below a directory, also while a server deletes some of them. */
export const filesBelow = (directory: string): string[] =>
  unlessDeleted(() => readdirSync(directory, { recursive: true, withFileTypes: true }), [])
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));

/**
 * Returns what `read` returns, or `otherwise` where a file, directory or process (below `/proc`) does not exist, for instance
 * because it was deleted or has ended meanwhile.
 */
export function unlessDeleted<T>(read: () => T, otherwise: T): T {
  try {
    return read();
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return otherwise;
    throw error;
  }
}
