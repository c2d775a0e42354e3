import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/**
 * Sets how many files this process may have open (its soft limit). 0 leaves it as the runtime has set it at the start:
 * at the hard limit.
 * @throws Error where there is no `prlimit` program (it comes with Linux), or when the limit is above the hard one
 */
export async function limitOpenFiles(limit: number): Promise<void> {
  if (limit === 0) return;
  await promisify(execFile)('prlimit', ['--pid', String(process.pid), `--nofile=${limit}:`]);
}
