import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { it } from 'node:test';
import { limitOpenFiles } from './index.ts';

/** What a shell begins with is what its parent has. */
const softLimit = () => execFileSync('sh', ['-c', 'ulimit -Sn'], { encoding: 'utf8' }).trim();
const hardLimit = () => execFileSync('sh', ['-c', 'ulimit -Hn'], { encoding: 'utf8' }).trim();

it('sets how many files may be open [option: soft_file_limit]', async () => {
  const [before, hard] = [softLimit(), hardLimit()];
  if (hard !== 'unlimited') assert.equal(before, hard, 'the runtime has raised it');
  await limitOpenFiles(512);
  assert.equal(softLimit(), '512');
  assert.equal(hardLimit(), hard);
  await limitOpenFiles(0);
  assert.equal(softLimit(), '512');
  await assert.rejects(limitOpenFiles(Number(hard) + 1));
});
