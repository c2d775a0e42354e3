import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import { it } from 'node:test';
import { makeDatabaseFolder, removeAbandonedFolders } from './database-folder.ts';

it('removeAbandonedFolders removes the folders of killed processes and keeps the folders of running processes', () => {
  const code = `
    const { makeDatabaseFolder } = await import(${JSON.stringify(import.meta.resolve('./database-folder.ts'))});
    process.stdout.write(makeDatabaseFolder('hearth-sqlite-'));
    process.kill(process.pid, 'SIGKILL');
  `;
  const killed = spawnSync(process.execPath, ['--input-type=module', '--eval', code], { encoding: 'utf8' });
  const abandoned = killed.stdout;
  const folderInUse = makeDatabaseFolder('hearth-sqlite-');
  try {
    assert.ok(existsSync(abandoned), killed.stderr);
    removeAbandonedFolders();
    assert.deepEqual([existsSync(abandoned), existsSync(folderInUse)], [false, true]);
  } finally {
    rmSync(folderInUse, { recursive: true, force: true });
  }
});
