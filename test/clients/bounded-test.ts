import * as runner from 'node:test';

/**
 * Milliseconds for one test with real clients, and for starting and stopping its server and clients: a client that
 * waits for ever would hold up all later tests. `eventually` gives up earlier, and says what it waited for.
 */
const timeout = 300_000;

type Work = () => unknown;

/** As `test` of node:test, with a timeout. */
export function test(title: string, work: (context: runner.TestContext) => unknown): void {
  void runner.test(title, { timeout }, async (context) => void (await work(context)));
}

/** As `before` of node:test, with a timeout. */
export function before(work: Work): void {
  runner.before(async () => void (await work()), { timeout });
}

/** As `after` of node:test, with a timeout. */
export function after(work: Work): void {
  runner.after(async () => void (await work()), { timeout });
}
