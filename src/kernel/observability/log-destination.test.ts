import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { eventually } from '../../../test/clients/eventually.ts';
import { LogDestination } from './log-destination.ts';

/**
 * Runs a program that logs like the server, including uncaught exceptions.
 * @param target JavaScript source of the member `to` of a log output
 */
function run(target: string, statements: string) {
  const logs = new URL('./index.ts', import.meta.url).href;
  const program = `
    import { setTimeout as delay } from 'node:timers/promises';
    import { Logs } from ${JSON.stringify(logs)};
    const outputs = [{ to: ${target}, level: 'info' }, { to: 'stdout', level: 'info' }];
    const { root: log } = new Logs({ level: 'info', levels: new Map(), outputs, remarks: [] });
    process.on('uncaughtException', (error) => {
      log.fatal({ err: error }, 'uncaught exception');
      process.exit(1);
    });
    ${statements}`;
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    encoding: 'utf8',
    timeout: 120_000,
    killSignal: 'SIGKILL',
  });
  const messages = stdout.split('\n').filter((line) => line !== '');
  return { status, stderr, messages: messages.map((line) => JSON.parse(line).msg) };
}

describe('LogDestination', () => {
  it('reports only once that a log cannot be written, while the process and the other logs go on', () => {
    const { status, stderr, messages } = run(
      `{ file: '/dev/full' }`,
      `for (const line of ['one', 'two', 'three']) { log.info(line); await delay(20); }
       log.info('the last line');
       process.exit(7);`,
    );
    assert.deepEqual([status, messages], [7, ['one', 'two', 'three', 'the last line']]);
    assert.match(stderr, /^hearth: cannot write the log \/dev\/full: ENOSPC[^\n]+\n$/);
  });

  it('writes the last lines when the process ends', () => {
    assert.deepEqual(run(`'stderr'`, `log.info('the end'); process.exit(0);`).messages, ['the end']);
  });

  it('buffers a bounded amount for a blocked reader and logs how many lines are lost', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'hearth-log-'));
    const pipe = join(folder, 'pipe');
    execFileSync('mkfifo', [pipe]);
    const fd = openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK);
    try {
      const log = new LogDestination(fd, 'pipe', 10_000);
      const line = `${JSON.stringify({ msg: 'x'.repeat(987) })}\n`;
      // The operating system buffers some lines in the pipe, and LogDestination at most 10,000 characters; further lines are lost.
      for (let round = 0; round < 20; round += 1) {
        for (let count = 0; count < 12; count += 1) log.write(line);
        await new Promise((resolve) => setImmediate(resolve));
      }
      let read = '';
      const lines = await eventually('all buffered lines', () => {
        read += readSome(fd);
        const whole = read.split('\n').slice(0, -1);
        const all = whole.map((text): { msg: string; lost?: number } => JSON.parse(text));
        const lost = all.reduce((sum, { lost = 0 }) => sum + lost, 0);
        const kept = all.filter(({ msg }) => msg.startsWith('xxx')).length;
        return kept + lost === 20 * 12 && { kept, lost };
      });
      assert.ok(lines.lost > 0 && lines.kept > 0);
      log.end(false);
    } finally {
      closeSync(fd);
      rmSync(folder, { recursive: true });
    }
  });
});

function readSome(fd: number): string {
  const buffer = Buffer.alloc(2 ** 16);
  try {
    return buffer.toString('utf8', 0, readSync(fd, buffer));
  } catch {
    return ''; // The pipe is empty.
  }
}
