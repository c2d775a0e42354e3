import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { describe, it } from 'node:test';
import { eventually } from '../../../test/clients/eventually.ts';
import { type Stall, StallWatch } from './stall-watch.ts';

/** A command that runs the command after it as the first process of a namespace of processes, as containers do. */
const namespace = ['unshare', '--fork', '--pid', '--kill-child'];
const skipReason =
  spawnSync(namespace[0]!, [...namespace.slice(1), 'true']).status === 0
    ? false
    : 'namespaces of processes need root';

describe('StallWatch', () => {
  it('reports the code that blocks the process', async () => {
    const watch = new StallWatch({ beatInterval: 10, reportAfter: 60, writeAfter: 60_000, endAfter: 90_000 });
    const stalls: Stall[] = [];
    watch.start((stall) => stalls.push(stall));
    try {
      // A busy machine may stall other code before.
      await eventually('a stall of the code of this test', () => {
        blockFor(200);
        return stalls.some(({ frames }) => frames.some((frame) => frame.startsWith(`${import.meta.url}:`)));
      });
    } finally {
      watch.stop();
    }
  });

  it('ends a process that is stuck in the code of a module and logs that code, but no process that is stuck in other code or has a debugger', async () => {
    const ended = await runStuckProgram({ moduleUrl: 'data:text/javascript', stuckFor: 100_000 });
    assert.equal(ended.signal, 'SIGKILL', ended.written);
    const [line] = ended.written
      .split('\n')
      .filter((text) => text.includes('"The process ends, since it is stuck in the code of a module"'));
    const { level, time, frames } = JSON.parse(line!);
    assert.deepEqual([level, new Date(time).toISOString()], ['error', time], 'as other lines of the log');
    assert.match(frames[0], /^data:/);
    const other = await runStuckProgram({ moduleUrl: 'file:///modules/', stuckFor: 250 });
    assert.equal(other.code, 5, other.written);
    const debugged = await runStuckProgram({
      moduleUrl: 'data:text/javascript',
      stuckFor: 250,
      options: ['--inspect=127.0.0.1:0'],
    });
    assert.equal(debugged.code, 5, debugged.written);
  });

  it('ends the first process of a container, which SIGKILL does not end', {
    skip: skipReason,
  }, async () => {
    const { code, written } = await runStuckProgram({
      moduleUrl: 'data:text/javascript',
      stuckFor: 100_000,
      within: namespace,
    });
    assert.equal(code, 137, written);
    assert.match(written, /"The process ends, since it is stuck in the code of a module"/);
  });
});

/**
 * Runs a program that is stuck in code of a `data:` URL, and exits with code 5 afterwards. Resolves when it has ended.
 * @param moduleUrl the beginning of the URLs that count as modules
 * @param stuckFor milliseconds for which the program is stuck
 * @param options options of Node
 * @param within a command that runs the program
 */
async function runStuckProgram({
  moduleUrl,
  stuckFor,
  options = [],
  within = [],
}: {
  moduleUrl: string;
  stuckFor: number;
  options?: readonly string[];
  within?: readonly string[];
}) {
  const times = { beatInterval: 5, reportAfter: 20, writeAfter: 40, endAfter: 80 };
  const program = `
    import { StallWatch } from ${JSON.stringify(import.meta.resolve('./stall-watch.ts'))};
    new StallWatch(${JSON.stringify(times)}).start(() => {}, [${JSON.stringify(moduleUrl)}]);
    await import('data:text/javascript,await 0; const end = Date.now() + ${stuckFor}; while (Date.now() < end);');
    process.exit(5);`;
  const [command = '', ...args] = [
    ...within,
    process.execPath,
    ...options,
    '--input-type=module',
    '-e',
    program,
  ];
  const child = spawn(command, args, { timeout: 150_000 });
  const [written, [code, signal]] = await Promise.all([text(child.stderr), once(child, 'exit')]);
  return { code, signal, written };
}

function blockFor(milliseconds: number): void {
  const end = performance.now() + milliseconds;
  while (performance.now() < end);
}
