import { afterEach, beforeEach } from 'node:test';

/** The test process is ended when no test starts or ends for this many milliseconds. */
const maxSilence = 10 * 60_000;

/** Milliseconds between two checks. */
const interval = 10_000;

/** Full names of the tests that are running. */
const running = new Set<string>();
let changedAt = performance.now();

beforeEach((test) => {
  running.add(test.fullName);
  changedAt = performance.now();
});
afterEach((test) => {
  running.delete(test.fullName);
  changedAt = performance.now();
});

/** Ends a process whose tests wait for something that never happens, after printing the names of these tests. */
setInterval(() => {
  if (performance.now() - changedAt < maxSilence) return;
  const names = [...running].map((name) => JSON.stringify(name)).join(', ') || 'none';
  const resources = process.getActiveResourcesInfo().join(', ');
  process.stderr.write(
    `No test began or ended in ${maxSilence / 60_000} minutes. Running tests: ${names}. Active resources: ${resources}\n`,
  );
  process.exit(1);
}, interval).unref();
