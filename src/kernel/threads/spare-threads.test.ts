import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import type { Worker } from 'node:worker_threads';
import { type ManualClock, manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { SpareThreads } from './spare-threads.ts';

const folder = mkdtempSync(join(tmpdir(), 'hearth-threads-'));
after(() => rmSync(folder, { recursive: true }));
writeFileSync(
  join(folder, 'echo.ts'),
  `import { parentPort, threadId } from 'node:worker_threads';
   parentPort!.on('message', (text: string) => {
     if (text === 'fail') throw new Error('thrown by the test');
     parentPort!.postMessage(threadId + ' ' + text);
   });`,
);
const echoThreads = (clock?: ManualClock) =>
  new SpareThreads('./echo', pathToFileURL(join(folder, 'here.ts')).href, clock);

async function echo(thread: Worker, text: string): Promise<string> {
  thread.ref();
  thread.postMessage(text);
  const answer = await new Promise((resolve) => thread.once('message', resolve));
  thread.unref();
  return String(answer);
}

const endOf = (thread: Worker) => new Promise((resolve) => thread.once('exit', resolve));

test('SpareThreads reuses a released thread, without the listeners of its previous user', async () => {
  const threads = echoThreads();
  const first = threads.take();
  const received: unknown[] = [];
  first.on('message', (message) => received.push(message));
  const number = (await echo(first, 'one')).split(' ')[0];
  threads.release(first);
  const second = threads.take();
  assert.equal(await echo(second, 'two'), `${number} two`);
  assert.deepEqual(received, [`${number} one`]);
  await second.terminate();
});

test('SpareThreads drops a spare thread that has ended', async () => {
  const threads = echoThreads();
  const first = threads.take();
  await echo(first, 'one');
  threads.release(first);
  const ended = endOf(first);
  first.ref();
  first.postMessage('fail');
  await ended;
  const second = threads.take();
  assert.notEqual(second, first);
  assert.match(await echo(second, 'two'), / two$/);
  await second.terminate();
});

test('SpareThreads keeps at most four spare threads', async () => {
  const threads = echoThreads();
  const taken = Array.from({ length: 6 }, () => threads.take());
  await Promise.all(taken.map((thread) => echo(thread, 'ready')));
  for (const thread of taken) threads.release(thread);
  const ended = Promise.all(taken.slice(4).map(endOf));
  await ended;
  const takenAgain = Array.from({ length: 6 }, () => threads.take());
  assert.equal(takenAgain.filter((thread) => taken.includes(thread)).length, 4);
  await Promise.all(takenAgain.map((thread) => thread.terminate()));
});

test('SpareThreads ends a spare thread after 10 seconds, and not one that was taken again', async () => {
  const clock = manualClock();
  const threads = echoThreads(clock);
  const [first, second] = [threads.take(), threads.take()];
  await Promise.all([echo(first, 'one'), echo(second, 'two')]);
  threads.release(first);
  threads.release(second);
  assert.equal(threads.take(), second);
  const ended = endOf(first);
  clock.advance(10_000);
  await ended;
  assert.match(await echo(second, 'still here'), / still here$/);
  const third = threads.take();
  assert.ok(third !== first && third !== second);
  await Promise.all([second, third].map((thread) => thread.terminate()));
});
