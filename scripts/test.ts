/**
 * Runs the tests: `node scripts/test.ts [path ...] [flag of node --test ...]`. A path is a file, a folder or a glob;
 * without one, everything runs that needs nothing but npm. A flag has its value behind `=`, not behind a space.
 */
import { spawn } from 'node:child_process';
import { globSync, statSync } from 'node:fs';
import { enableCompileCache } from 'node:module';
import { dirname } from 'node:path';

const everything = ['src/**/*.test.ts', 'test/**/*.test.ts'];
/** They need other people's clients from the operating system's packages. */
const special = ['test/clients/**', 'test/interop/**'];

function filesOf(path: string): string[] {
  const isFolder = statSync(path, { throwIfNoEntry: false })?.isDirectory();
  return globSync(isFolder ? `${path.replace(/\/$/, '')}/**/*.test.ts` : path);
}

const given = process.argv.slice(2);
const flags = given.filter((argument) => argument.startsWith('-'));
const paths = given.filter((argument) => !argument.startsWith('-'));

process.chdir(dirname(import.meta.dirname));
const files = paths.length > 0 ? paths.flatMap(filesOf) : globSync(everything, { exclude: special });
if (files.length === 0) {
  process.stderr.write(`no test matches ${paths.join(' ')}\n`);
  process.exit(1);
}

// Each file is a process of its own: together they load the same sources a hundred times.
const { directory: compileCache } = enableCompileCache();

const runner = spawn(
  process.execPath,
  [
    '--test',
    '--test-global-setup=test/support/global-setup.ts',
    '--test-concurrency=2',
    ...flags,
    ...files.sort(),
  ],
  {
    stdio: 'inherit',
    env: { ...process.env, ...(compileCache && { NODE_COMPILE_CACHE: compileCache }) },
  },
);
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => runner.kill(signal));
runner.on('exit', (code) => {
  process.exitCode = code ?? 1;
});
