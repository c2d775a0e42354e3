import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/**
 * Sets the soft limit of open files of this process. 0 leaves the limit as it is, which is the hard limit: the runtime
 * raises the soft limit at start.
 * @throws Error when the program `prlimit` is missing (it is a part of Linux), or when `limit` is above the
 * hard limit
 */
export async function limitOpenFiles(limit: number): Promise<void> {
  if (limit === 0) return;
  await promisify(execFile)('prlimit', ['--pid', String(process.pid), `--nofile=${limit}:`]);
}
