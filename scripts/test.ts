/**
 * Runs the tests: `node scripts/test.ts [path ...] [flag of node --test ...]`. A path is a file, a folder or a glob.
 * Without a path, runs all tests that need nothing but npm. The tests of `test/processes` and `test/cost` run only with
 * `HEARTH_TEST_THOROUGHLY=1`. Write the value of a flag after `=`, not after a space.
 */
import { spawn } from 'node:child_process';
import { globSync, statSync } from 'node:fs';
import { enableCompileCache } from 'node:module';
import { availableParallelism } from 'node:os';
import { dirname } from 'node:path';
import { isThorough } from '../test/support/inputs/thoroughness.ts';
import { groupTests } from './test-groups.ts';

const everything = ['src/**/*.test.ts', 'test/**/*.test.ts'];
/**
 * Tests that plain runs leave out. Some start built servers as processes, and most of these kill or restore the
 * servers. The others measure the CPU time of the largest requests.
 */
const longTests = ['test/processes/**', 'test/cost/**'];
/** Tests that need clients or another server that are installed on this machine. */
const needsInstalledPrograms = ['test/clients/**', 'test/interop/**'];
/**
 * Tests that keep a process busy for long, that start processes, or that measure CPU time. Each file runs in a process
 * of its own, before the others. (A process that has run many files has a large heap, whose garbage collection would be
 * measured as well.)
 */
const ungrouped = ['test/processes/', 'test/simulation/', 'test/clients/', 'test/interop/', 'test/cost/'];

function filesOf(path: string): string[] {
  const isFolder = statSync(path, { throwIfNoEntry: false })?.isDirectory();
  return globSync(isFolder ? `${path.replace(/\/$/, '')}/**/*.test.ts` : path);
}

const given = process.argv.slice(2);
const flags = given.filter((argument) => argument.startsWith('-'));
const paths = given.filter((argument) => !argument.startsWith('-'));

process.chdir(dirname(import.meta.dirname));
const excluded = isThorough ? needsInstalledPrograms : [...needsInstalledPrograms, ...longTests];
const files = paths.length > 0 ? paths.flatMap(filesOf) : globSync(everything, { exclude: excluded });
if (files.length === 0) {
  process.stderr.write(`no test matches ${paths.join(' ')}\n`);
  process.exit(1);
}

// The processes of the tests load the same sources, so they share one cache of compiled code.
const { directory: compileCache } = enableCompileCache();

/** One more process than can work at the same time, because most of them wait for a database now and then. */
const processes = availableParallelism() + 1;

const groups = groupTests(files.sort(), ungrouped);
const runner = spawn(
  process.execPath,
  [
    '--test',
    '--test-global-setup=test/support/databases/global-setup.ts',
    `--test-concurrency=${processes}`,
    ...flags,
    ...groups.entries,
  ],
  {
    stdio: 'inherit',
    env: { ...process.env, ...(compileCache && { NODE_COMPILE_CACHE: compileCache }) },
  },
);
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => runner.kill(signal));
runner.on('exit', (code) => {
  groups.remove();
  process.exitCode = code ?? 1;
});
