import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../test/support/network/free-port.ts';
import { Connection } from '../load/connection.ts';
import { usageOf } from '../load/process-usage.ts';
import type { Target } from '../target.ts';

const program = fileURLToPath(new URL('../ceiling/main.ts', import.meta.url));
/** Milliseconds that a start may take until the first response. */
const startTimeout = 10_000;

/** Starts the ceiling with an empty table. */
export async function startCeiling(): Promise<Target> {
  const directory = await mkdtemp(join(tmpdir(), 'hearth-ceiling-'));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const file = join(directory, 'ceiling.db');
  let child: ChildProcess;
  const killChild = () => void child?.kill('SIGKILL');
  process.once('exit', killChild);

  async function start(): Promise<number> {
    const startedAt = performance.now();
    child = spawn(process.execPath, [program, `${port}`, file], { stdio: 'inherit' });
    while (!(await answers(url))) {
      if (performance.now() - startedAt > startTimeout) throw new Error('the ceiling does not answer');
      await sleep(5);
    }
    return performance.now() - startedAt;
  }

  async function stop(): Promise<void> {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  }

  await start();
  return {
    kind: 'ceiling',
    url,
    registrationSecret: '',
    usage: () => (child.pid ? usageOf([child.pid]) : undefined),
    process: {
      async restart() {
        await stop();
        return start();
      },
      async databaseBytes() {
        throw new Error('the ceiling has no measurable database');
      },
      async runSql() {
        throw new Error('the ceiling has no tables of a homeserver');
      },
    },
    async close() {
      await stop();
      process.off('exit', killChild);
      await rm(directory, { recursive: true, force: true });
    },
  };
}

async function answers(url: string): Promise<boolean> {
  const connection = new Connection(url);
  try {
    return (await connection.request('GET', '/_matrix/client/versions')).status === 200;
  } catch {
    return false;
  } finally {
    connection.close();
  }
}
