import asyncHooks from 'node:async_hooks';

/**
 * Lets tests run without the test runner's tracking of asynchronous work, which takes a quarter of their CPU time and
 * memory. The runner tracks each promise, to find the test that an uncaught error belongs to; without it, such an error
 * fails the file and is reported with its stack. Run a file with `node --test` to see which test caused the error.
 *
 * This module must be imported before `node:test`.
 */
const { createHook } = asyncHooks;

type Hooks = Parameters<typeof createHook>[0];

/** Restricts a hook of the runner to the creation of tests and suites, from which it learns the suite of each test. */
const ofTestsOnly = ({ init }: Hooks): Hooks => ({
  init(asyncId, type, triggerAsyncId, resource) {
    if (type === 'Test') init?.(asyncId, type, triggerAsyncId, resource);
  },
  trackPromises: false,
});

asyncHooks.createHook = (hooks: Hooks) =>
  createHook(new Error().stack?.includes('node:internal/test_runner/') ? ofTestsOnly(hooks) : hooks);

const report = (error: unknown) =>
  process.stderr.write(`${(error instanceof Error && error.stack) || String(error)}\n`);
process.on('uncaughtExceptionMonitor', report);
process.on('unhandledRejection', report);
