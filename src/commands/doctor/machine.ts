import { readFileSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { totalmem } from 'node:os';

/** The resources of this machine that the checks read. */
export interface Machine {
  /**
   * Returns the free and the total bytes of the file system of a path, and its share of free inodes (0 to 1).
   * @throws Error when there is no such path
   */
  space(
    path: string,
  ): Promise<{ readonly free: number; readonly total: number; readonly freeInodes: number }>;
  /** Returns the bytes of memory that this process may use. */
  memory(): number;
  /**
   * Returns the hard limit of open files of the process `pid`, by default of this process; infinity when it has no limit,
   * `undefined` when the limit is not known.
   */
  maxOpenFiles(pid?: number): number | undefined;
}

export const thisMachine: Machine = {
  async space(path) {
    const { bsize, bavail, blocks, ffree, files } = await statfs(path);
    return { free: bavail * bsize, total: blocks * bsize, freeInodes: files === 0 ? 1 : ffree / files };
  },
  memory() {
    // Without a limit, constrainedMemory() returns a very large number.
    const limit = process.constrainedMemory();
    return limit > 0 ? Math.min(limit, totalmem()) : totalmem();
  },
  maxOpenFiles(pid) {
    try {
      const limits = readFileSync(`/proc/${pid ?? 'self'}/limits`, 'utf8');
      const hard = /^Max open files\s+\S+\s+(\S+)/m.exec(limits)?.[1];
      return hard === 'unlimited' ? Number.POSITIVE_INFINITY : hard === undefined ? undefined : Number(hard);
    } catch {
      return undefined;
    }
  },
};
