import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { claimFile } from './claim.ts';

const folder = mkdtempSync(join(tmpdir(), 'hearth-claim-'));
after(() => rmSync(folder, { recursive: true, force: true }));

/** Starts another process that claims a file and releases it. Returns its first output and its whole output. */
function claimElsewhere(path: string) {
  const code = `
    const { claimFile } = await import(${JSON.stringify(join(import.meta.dirname, 'claim.ts'))});
    process.stdout.write('tries, ');
    try { claimFile(${JSON.stringify(path)})(); process.stdout.write('has it'); }
    catch (error) { process.stdout.write(error.name); }`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const tries = new Promise((resolve) => child.stdout.once('data', resolve));
  return { tries, said: text(child.stdout) };
}

describe('claimFile', () => {
  it('waits until another process releases the claim', async () => {
    const path = join(folder, 'given-back.db');
    const giveBack = claimFile(path);
    const other = claimElsewhere(path);
    await other.tries;
    // Long enough for the other process to fail if it did not wait.
    await sleep(500);
    giveBack();
    assert.equal(await other.said, 'tries, has it');
    claimFile(path)();
  });

  it('throws StartFailure while another process has the claim', async () => {
    const path = join(folder, 'kept.db');
    const giveBack = claimFile(path);
    assert.equal(await claimElsewhere(path).said, 'tries, StartFailure');
    giveBack();
  });
});
