import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { it } from 'node:test';
import { limitOpenFiles } from './index.ts';

// A shell inherits the limits of this process.
const softLimit = () => execFileSync('sh', ['-c', 'ulimit -Sn'], { encoding: 'utf8' }).trim();
const hardLimit = () => execFileSync('sh', ['-c', 'ulimit -Hn'], { encoding: 'utf8' }).trim();

it('limitOpenFiles sets the soft limit of open files, leaves it as it is for 0, and rejects a limit above the hard limit [option: soft_file_limit]', async () => {
  const [before, hard] = [softLimit(), hardLimit()];
  if (hard !== 'unlimited')
    assert.equal(before, hard, 'Node raises the soft limit to the hard limit at start');
  await limitOpenFiles(512);
  assert.equal(softLimit(), '512');
  assert.equal(hardLimit(), hard);
  await limitOpenFiles(0);
  assert.equal(softLimit(), '512');
  await assert.rejects(limitOpenFiles(Number(hard) + 1));
});
