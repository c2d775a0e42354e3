import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { after, before, test } from './bounded-test.ts';
import { type ServerUnderTest, serverUnderTest } from './server-under-test.ts';

const run = promisify(execFile);
/** The system's Python, because the library is a package of the system. */
const python = '/usr/bin/python3';
const scripts = ['conversation', 'account', 'timeline'];

let server: ServerUnderTest;
before(async () => {
  await run(python, ['-c', 'import nio']).catch(() =>
    assert.fail('matrix-nio is missing; install it with: apt-get install python3-matrix-nio'),
  );
  server = await serverUnderTest();
});
after(() => server?.stop());

for (const script of scripts) {
  test(`matrix-nio completes the script ${script}.py`, async () => {
    const file = fileURLToPath(new URL(`nio/${script}.py`, import.meta.url));
    await run(python, ['-B', file, server.url], { timeout: 300_000 }).catch(
      (error: Error & { stderr?: string }) => assert.fail(error.stderr || error.message),
    );
  });
}
