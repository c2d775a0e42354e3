import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { filesBelow } from '../../../test/support/files/stored-files.ts';
import { FileSystemProvider } from './file-system-provider.ts';

describe('FileSystemProvider', () => {
  const folder = mkdtempSync(join(tmpdir(), 'hearth-directory-'));
  after(() => rmSync(folder, { recursive: true, force: true }));

  it('stores one file when 20 calls store the same file at the same time', async () => {
    const target = join(folder, 'concurrent');
    const source = join(folder, 'source');
    writeFileSync(source, 'the file');
    const provider = new FileSystemProvider(target);
    const file = { source, size: 8, sha256: '' };
    await Promise.all(Array.from({ length: 20 }, () => provider.store('local/aa/bb', file)));
    assert.deepEqual(filesBelow(target), [join(target, 'local/aa/bb')]);
  });

  it('deletes at the start the incomplete files that crashed processes have left, and no other files', async () => {
    const target = join(folder, 'swept');
    const incoming = join(target, 'incoming');
    mkdirSync(incoming, { recursive: true });
    const letters = 'a'.repeat(16);
    const day = 24 * 3_600_000;
    const now = Date.now();
    const changeTimes: Record<string, Date> = {
      // The process of this test writes no file at the moment; there is no process 4194305; the parent process is running.
      [`${hostname()}.${process.pid}.${letters}.part`]: new Date(now),
      [`${hostname()}.4194305.${letters}.part`]: new Date(now),
      [`${hostname()}.${process.ppid}.${letters}.part`]: new Date(now - 2 * day),
      [`other.example.1.${letters}.part`]: new Date(now - day / 2),
      [`other.example.2.${letters}.part`]: new Date(now - 2 * day),
      'a file of the operator': new Date(now - 2 * day),
    };
    for (const [name, changed] of Object.entries(changeTimes)) {
      writeFileSync(join(incoming, name), 'half');
      utimesSync(join(incoming, name), changed, changed);
    }
    await new FileSystemProvider(target).sweep(now);
    assert.deepEqual(
      readdirSync(incoming),
      [
        'a file of the operator',
        `${hostname()}.${process.ppid}.${letters}.part`,
        `other.example.1.${letters}.part`,
      ].sort(),
    );
    await new FileSystemProvider(join(folder, 'missing')).sweep(now);
  });
});
