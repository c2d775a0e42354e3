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
import { unlessDeleted } from '../../../test/support/files/stored-files.ts';
import type { Clock } from '../clock.ts';
import { systemClock } from '../clock.ts';
import { type TaskLimits, TaskProcesses } from './index.ts';

const folder = mkdtempSync(join(tmpdir(), 'hearth-tasks-'));
after(() => rmSync(folder, { recursive: true }));
// The programs are JavaScript, because each process would load the compiler of TypeScript.
writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
const moduleUrl = JSON.stringify(new URL('./index.ts', import.meta.url).href);
writeFileSync(
  join(folder, 'tasks.js'),
  `import { performTasks } from ${moduleUrl};
   await performTasks(async () => async ({ say }) => {
     if (say === 'crash') process.abort();
     if (say === 'throw') throw new Error('thrown by the test');
     if (say === 'send null') process.send(null);
     if (say === 'send invalid') process.send({ kind: 'toString' });
     if (say === 'hang') for (;;);
     if (say === 'wait') await new Promise(() => undefined);
     if (say === 'environment') return Object.keys(process.env).join();
     return process.pid + ' ' + say;
   });`,
);
writeFileSync(
  join(folder, 'broken.js'),
  `import { performTasks } from ${moduleUrl};
   await performTasks(() => import('a-library-that-is-missing'));`,
);

writeFileSync(
  join(folder, 'gated.js'),
  `import { existsSync } from 'node:fs';
   import { setTimeout as delay } from 'node:timers/promises';
   import { performTasks } from ${moduleUrl};
   await performTasks(async () => {
     while (!existsSync(${JSON.stringify(join(folder, 'gate'))})) await delay(5);
     return async ({ say }) => process.pid + ' ' + say;
   });`,
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
    importedFrom: pathToFileURL(join(folder, 'here.js')).href,
    environment: { GIVEN: 'x' },
    limits: {
      processes: 1,
      waiting: { urgent: 3, background: 3 },
      taskTimeout: 60_000,
      idleTimeout: 60_000,
      growAfter: 0,
      ...limits,
    },
    clock,
  });
  started.push(made);
  return made;
}

const pidOf = (answer: string) => Number(answer.split(' ')[0]);
const failsAs = (task: Promise<string>, reason: string) => assert.rejects(task, { reason });

/** Whether a process of this id is running. Zombies (ended, but not waited for) count as ended. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  if (!existsSync('/proc/self/stat')) return true;
  const status = unlessDeleted(() => readFileSync(`/proc/${pid}/stat`, 'utf8'), undefined);
  return status !== undefined && !status.includes(') Z ');
}

it('TaskProcesses performs tasks one after the other in one process', async () => {
  const tasks = processes();
  const answers = await Promise.all(['a', 'b', 'c'].map((say) => tasks.run({ say }, 'urgent')));
  assert.deepEqual(
    answers.map((answer) => answer.split(' ')[1]),
    ['a', 'b', 'c'],
  );
  assert.equal(new Set(answers.map(pidOf)).size, 1);
  assert.notEqual(pidOf(answers[0]!), process.pid);
});

it('TaskProcesses hides the environment of this process from task processes', async () => {
  const names = (await processes().run({ say: 'environment' }, 'urgent')).split(',');
  assert.ok(names.includes('GIVEN'));
  assert.ok(!names.includes('PATH') && !names.includes('HOME'));
});

it('TaskProcesses rejects the task of a crashed process and starts another process', async () => {
  const tasks = processes();
  for (const say of ['crash', 'throw', 'send null', 'send invalid']) {
    await failsAs(tasks.run({ say }, 'urgent'), 'crashed');
    assert.match(await tasks.run({ say: 'again' }, 'urgent'), / again$/);
  }
});

it('TaskProcesses kills a process whose task exceeds its timeout, even in an endless loop', async () => {
  const clock = manualClock();
  const tasks = processes({ taskTimeout: 1_000 }, clock);
  const pid = pidOf(await tasks.run({ say: 'a' }, 'urgent'));
  const [hanging, next] = [tasks.run({ say: 'hang' }, 'urgent'), tasks.run({ say: 'next' }, 'urgent')];
  clock.advance(1_000);
  await failsAs(hanging, 'too-slow');
  assert.match(await next, / next$/);
  await eventually('the process to end', async () => !isAlive(pid));
});

it('TaskProcesses counts the time of a task from the moment when its process is ready, and limits the start of a process to a minute', async () => {
  const clock = manualClock();
  const tasks = processes({ taskTimeout: 1_000 }, clock, './gated');
  const late = failsAs(tasks.run({ say: 'a' }, 'urgent'), 'unavailable');
  clock.advance(60_000);
  await late;
  const next = tasks.run({ say: 'b' }, 'urgent');
  clock.advance(59_999);
  writeFileSync(join(folder, 'gate'), '');
  assert.match(await next, / b$/);
});

it('TaskProcesses rejects tasks as unavailable when the program fails before it is ready for tasks', async () => {
  const tasks = processes({}, systemClock, './broken');
  await assert.rejects(tasks.run({ say: 'a' }, 'urgent'), {
    reason: 'unavailable',
    message: /a-library-that-is-missing/,
  });
});

it('TaskProcesses rejects tasks as unavailable when processes cannot be started', async () => {
  const tasks = processes({}, systemClock, 'https://elsewhere.test/tasks');
  const all = ['a', 'b', 'c'].map((say) => failsAs(tasks.run({ say }, 'urgent'), 'unavailable'));
  await Promise.all(all);
});

it('TaskProcesses bounds waiting tasks and performs urgent tasks first', async () => {
  const tasks = processes({ waiting: { urgent: 2, background: 2 } });
  const order: string[] = [];
  const run = (say: string, urgency: 'urgent' | 'background') =>
    tasks.run({ say }, urgency).then(() => void order.push(say));
  const all = [run('first', 'background'), run('b1', 'background'), run('b2', 'background')];
  await failsAs(tasks.run({ say: 'b3' }, 'background'), 'busy');
  all.push(run('u1', 'urgent'), run('u2', 'urgent'));
  await failsAs(tasks.run({ say: 'u3' }, 'urgent'), 'busy');
  await Promise.all(all);
  assert.deepEqual(order, ['first', 'u1', 'u2', 'b1', 'b2']);
});

it('TaskProcesses keeps one process free of background tasks', async () => {
  const tasks = processes({ processes: 2 });
  const waiting = [1, 2].map(() => tasks.run({ say: 'wait' }, 'background'));
  assert.match(await tasks.run({ say: 'urgent' }, 'urgent'), / urgent$/);
  tasks.stop();
  for (const one of waiting) await failsAs(one, 'stopped');
});

it('TaskProcesses starts a second process only for a task that has waited', async () => {
  const clock = manualClock();
  const tasks = processes({ processes: 2, growAfter: 500 }, clock);
  const pids = (await Promise.all(['a', 'b', 'c'].map((say) => tasks.run({ say }, 'urgent')))).map(pidOf);
  assert.equal(new Set(pids).size, 1);
  const hanging = tasks.run({ say: 'wait' }, 'urgent');
  const second = tasks.run({ say: 'd' }, 'urgent');
  clock.advance(500);
  assert.notEqual(pidOf(await second), pids[0]);
  tasks.stop();
  await failsAs(hanging, 'stopped');
});

it('TaskProcesses starts no second process while no task waits for long', async () => {
  const clock = manualClock();
  const tasks = processes({ processes: 2, growAfter: 500 }, clock);
  const pids = new Set<number>();
  let last = tasks.run({ say: 'first' }, 'urgent');
  for (const say of ['a', 'b', 'c', 'd']) {
    const next = tasks.run({ say }, 'urgent');
    clock.advance(400);
    pids.add(pidOf(await last));
    last = next;
  }
  pids.add(pidOf(await last));
  assert.equal(pids.size, 1);
});

it('TaskProcesses ends idle processes, and all processes when it stops', async () => {
  const clock = manualClock();
  const tasks = processes({ idleTimeout: 1_000 }, clock);
  const first = pidOf(await tasks.run({ say: 'a' }, 'urgent'));
  assert.ok(isAlive(first));
  clock.advance(1_000);
  await eventually('the process to end', async () => !isAlive(first));
  const second = pidOf(await tasks.run({ say: 'b' }, 'urgent'));
  const [underWay, queued] = [tasks.run({ say: 'hang' }, 'urgent'), tasks.run({ say: 'c' }, 'urgent')];
  tasks.stop();
  await Promise.all([underWay, queued].map((task) => failsAs(task, 'stopped')));
  await failsAs(tasks.run({ say: 'd' }, 'urgent'), 'stopped');
  await eventually('the process to end', async () => !isAlive(second));
});

it('TaskProcesses leaves no task process behind when the process that has started it is killed', async () => {
  const importing = (path: string) => JSON.stringify(new URL(path, import.meta.url).href);
  writeFileSync(
    join(folder, 'parent.js'),
    `import { TaskProcesses } from ${importing('./index.ts')};
     import { systemClock } from ${importing('../clock.ts')};
     const limits = { processes: 1, waiting: { urgent: 9, background: 9 }, taskTimeout: 60_000, idleTimeout: 60_000, growAfter: 0 };
     const deps = { program: './tasks', importedFrom: import.meta.url, environment: {}, limits, clock: systemClock };
     const tasks = new TaskProcesses(deps);
     console.log(await tasks.run({ say: 'here' }, 'urgent'));
     await tasks.run({ say: 'wait' }, 'urgent');`,
  );
  const parent = spawn(process.execPath, [join(folder, 'parent.js')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [output] = (await once(parent.stdout, 'data')) as [Buffer];
  const pid = pidOf(output.toString());
  assert.ok(isAlive(pid));
  parent.kill('SIGKILL');
  await eventually('the process to end', async () => !isAlive(pid));
});
