import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { eventually } from '../../../test/clients/eventually.ts';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import type { Clock } from '../clock.ts';
import { systemClock } from '../clock.ts';
import { type TaskLimits, TaskProcesses } from './index.ts';

const folder = mkdtempSync(join(tmpdir(), 'hearth-tasks-'));
after(() => rmSync(folder, { recursive: true }));
const face = JSON.stringify(new URL('./index.ts', import.meta.url).href);
writeFileSync(
  join(folder, 'tasks.ts'),
  `import { performTasks } from ${face};
   await performTasks(async () => async ({ say }) => {
     if (say === 'crash') process.abort();
     if (say === 'throw') throw new Error('as it was told');
     if (say === 'babble') process.send(null);
     if (say === 'rave') process.send({ kind: 'toString' });
     if (say === 'hang') for (;;);
     if (say === 'wait') await new Promise(() => undefined);
     if (say === 'environment') return Object.keys(process.env).join();
     return process.pid + ' ' + say;
   });`,
);
writeFileSync(
  join(folder, 'broken.ts'),
  `import { performTasks } from ${face};
   await performTasks(() => import('a-library-that-is-missing'));`,
);

type Processes = TaskProcesses<{ say: string }, string>;
const started: Processes[] = [];
afterEach(() => {
  for (const processes of started.splice(0)) processes.stop();
});

function processes(
  limits: Partial<TaskLimits> = {},
  clock: Clock = systemClock,
  program = './tasks',
): Processes {
  const made: Processes = new TaskProcesses({
    program,
    importedFrom: pathToFileURL(join(folder, 'here.ts')).href,
    environment: { GIVEN: 'x' },
    limits: {
      processes: 1,
      waiting: { urgent: 3, patient: 3 },
      taskTime: 60_000,
      idleTime: 60_000,
      ...limits,
    },
    clock,
  });
  started.push(made);
  return made;
}

const pidOf = (answer: string) => Number(answer.split(' ')[0]);
const failsAs = (task: Promise<string>, reason: string) => assert.rejects(task, { reason });

/** Whether a process of this number runs; one that has ended and that nobody has asked about does not. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  const status = existsSync('/proc/self/stat') ? `/proc/${pid}/stat` : undefined;
  return status === undefined || (existsSync(status) && !readFileSync(status, 'utf8').includes(') Z '));
}

it('does one task after the other, in one process', async () => {
  const tasks = processes();
  const answers = await Promise.all(['a', 'b', 'c'].map((say) => tasks.run({ say }, 'urgent')));
  assert.deepEqual(
    answers.map((answer) => answer.split(' ')[1]),
    ['a', 'b', 'c'],
  );
  assert.equal(new Set(answers.map(pidOf)).size, 1);
  assert.notEqual(pidOf(answers[0]!), process.pid);
});

it('gives the process nothing of its own environment', async () => {
  const names = (await processes().run({ say: 'environment' }, 'urgent')).split(',');
  assert.ok(names.includes('GIVEN'));
  assert.ok(!names.includes('PATH') && !names.includes('HOME'));
});

it('survives processes that crash, and starts another', async () => {
  const tasks = processes();
  for (const say of ['crash', 'throw', 'babble', 'rave']) {
    await failsAs(tasks.run({ say }, 'urgent'), 'crashed');
    assert.match(await tasks.run({ say: 'again' }, 'urgent'), / again$/);
  }
});

it('kills what takes too long, though it never gives way', async () => {
  const clock = manualClock();
  const tasks = processes({ taskTime: 1_000 }, clock);
  const pid = pidOf(await tasks.run({ say: 'a' }, 'urgent'));
  const [hanging, next] = [tasks.run({ say: 'hang' }, 'urgent'), tasks.run({ say: 'next' }, 'urgent')];
  clock.advance(1_000);
  await failsAs(hanging, 'too-slow');
  assert.match(await next, / next$/);
  await eventually('it to be gone', async () => !isAlive(pid));
});

it('says when a process can not begin', async () => {
  const tasks = processes({}, systemClock, './broken');
  await assert.rejects(tasks.run({ say: 'a' }, 'urgent'), {
    reason: 'unavailable',
    message: /a-library-that-is-missing/,
  });
});

it('goes on where none can be started', async () => {
  const tasks = processes({}, systemClock, 'https://elsewhere.test/tasks');
  const all = ['a', 'b', 'c'].map((say) => failsAs(tasks.run({ say }, 'urgent'), 'unavailable'));
  await Promise.all(all);
});

it('takes so many tasks and no more, and those that somebody waits for first', async () => {
  const tasks = processes({ waiting: { urgent: 2, patient: 2 } });
  const order: string[] = [];
  const run = (say: string, urgency: 'urgent' | 'patient') =>
    tasks.run({ say }, urgency).then(() => void order.push(say));
  const all = [run('first', 'patient'), run('p1', 'patient'), run('p2', 'patient')];
  await failsAs(tasks.run({ say: 'p3' }, 'patient'), 'busy');
  all.push(run('u1', 'urgent'), run('u2', 'urgent'));
  await failsAs(tasks.run({ say: 'u3' }, 'urgent'), 'busy');
  await Promise.all(all);
  assert.deepEqual(order, ['first', 'u1', 'u2', 'p1', 'p2']);
});

it('keeps a process free of those that nobody waits for', async () => {
  const tasks = processes({ processes: 2 });
  const waiting = [1, 2].map(() => tasks.run({ say: 'wait' }, 'patient'));
  assert.match(await tasks.run({ say: 'urgent' }, 'urgent'), / urgent$/);
  tasks.stop();
  for (const one of waiting) await failsAs(one, 'stopped');
});

it('ends processes that have nothing to do, and all when it stops', async () => {
  const clock = manualClock();
  const tasks = processes({ idleTime: 1_000 }, clock);
  const first = pidOf(await tasks.run({ say: 'a' }, 'urgent'));
  assert.ok(isAlive(first));
  clock.advance(1_000);
  await eventually('it to be gone', async () => !isAlive(first));
  const second = pidOf(await tasks.run({ say: 'b' }, 'urgent'));
  const [underWay, queued] = [tasks.run({ say: 'hang' }, 'urgent'), tasks.run({ say: 'c' }, 'urgent')];
  tasks.stop();
  await Promise.all([underWay, queued].map((task) => failsAs(task, 'stopped')));
  await failsAs(tasks.run({ say: 'd' }, 'urgent'), 'stopped');
  await eventually('it to be gone', async () => !isAlive(second));
});

it('leaves no process behind when its own is killed', async () => {
  const importing = (path: string) => JSON.stringify(new URL(path, import.meta.url).href);
  writeFileSync(
    join(folder, 'parent.ts'),
    `import { TaskProcesses } from ${importing('./index.ts')};
     import { systemClock } from ${importing('../clock.ts')};
     const limits = { processes: 1, waiting: { urgent: 9, patient: 9 }, taskTime: 60_000, idleTime: 60_000 };
     const deps = { program: './tasks', importedFrom: import.meta.url, environment: {}, limits, clock: systemClock };
     const tasks = new TaskProcesses(deps);
     console.log(await tasks.run({ say: 'here' }, 'urgent'));
     await tasks.run({ say: 'wait' }, 'urgent');`,
  );
  const parent = spawn(process.execPath, [join(folder, 'parent.ts')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [said] = (await once(parent.stdout, 'data')) as [Buffer];
  const pid = pidOf(said.toString());
  assert.ok(isAlive(pid));
  parent.kill('SIGKILL');
  await eventually('it to be gone', async () => !isAlive(pid));
});
