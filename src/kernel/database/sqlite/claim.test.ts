import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, describe, it } from 'node:test';
import { eventually } from '../../../../test/clients/eventually.ts';
import { claimFile } from './claim.ts';

const folder = mkdtempSync(join(tmpdir(), 'hearth-claim-'));
after(() => rmSync(folder, { recursive: true, force: true }));

/**
 * Starts another process that claims a file and releases it.
 * @param timeout milliseconds for which it waits
 */
function claimElsewhere(path: string, timeout: number) {
  const code = `
    const { claimFile } = await import(${JSON.stringify(join(import.meta.dirname, 'claim.ts'))});
    process.stdout.write('tries, ');
    try { claimFile(${JSON.stringify(path)}, ${timeout})(); process.stdout.write('has it'); }
    catch (error) { process.stdout.write(error.name); }`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const begun = new Promise((resolve) => child.stdout.once('data', resolve));
  return {
    output: text(child.stdout),
    /** Waits until the process has tried several times: SQLite sleeps after each attempt. */
    async untilWaiting() {
      await begun;
      const before = sleepsOf(child.pid!);
      await eventually(
        'the other process',
        () => child.exitCode !== null || sleepsOf(child.pid!) > before + 10,
      );
    },
  };
}

/** How often the main thread of a process has slept. */
const sleepsOf = (pid: number) =>
  Number(/^voluntary_ctxt_switches:\s*(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);

describe('claimFile', () => {
  it('waits until another process releases the claim', async () => {
    const path = join(folder, 'released.db');
    const release = claimFile(path);
    const other = claimElsewhere(path, 60_000);
    await other.untilWaiting();
    release();
    assert.equal(await other.output, 'tries, has it');
    claimFile(path)();
  });

  it('throws StartFailure while another process has the claim', async () => {
    const path = join(folder, 'kept.db');
    const release = claimFile(path);
    assert.equal(await claimElsewhere(path, 100).output, 'tries, StartFailure');
    release();
  });
});
