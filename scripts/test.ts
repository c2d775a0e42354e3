/**
 * Runs the tests: `node scripts/test.ts [path ...] [flag of node --test ...]`. A path is a file, a folder or
 * a glob; without one, all tests run that need nothing but npm. Write the value of a flag after `=`, not
 * after a space.
 */
import { spawn } from 'node:child_process';
import { globSync, statSync } from 'node:fs';
import { enableCompileCache } from 'node:module';
import { availableParallelism } from 'node:os';
import { dirname } from 'node:path';
import { groupTests } from './test-groups.ts';

const everything = ['src/**/*.test.ts', 'test/**/*.test.ts'];
/** Tests that need clients from the operating system's packages. */
const needsInstalledClients = ['test/clients/**', 'test/interop/**'];
/**
 * Tests that keep a process busy for long, or that start processes; each file runs on its own, before the
 * others.
 */
const ungrouped = [
  'test/federation/three-processes',
  'test/encryption/crashes',
  'test/simulation/',
  'test/clients/',
  'test/interop/',
  'test/crash',
  'test/memory-owners',
  'test/operators/',
  'test/protocol/',
];

function filesOf(path: string): string[] {
  const isFolder = statSync(path, { throwIfNoEntry: false })?.isDirectory();
  return globSync(isFolder ? `${path.replace(/\/$/, '')}/**/*.test.ts` : path);
}

const given = process.argv.slice(2);
const flags = given.filter((argument) => argument.startsWith('-'));
const paths = given.filter((argument) => !argument.startsWith('-'));

process.chdir(dirname(import.meta.dirname));
const files =
  paths.length > 0 ? paths.flatMap(filesOf) : globSync(everything, { exclude: needsInstalledClients });
if (files.length === 0) {
  process.stderr.write(`no test matches ${paths.join(' ')}\n`);
  process.exit(1);
}

// Many processes load the same sources.
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
