import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { folderVariable } from '../databases/migrated-databases.ts';

const root = join(import.meta.dirname, '..', '..', '..');
const commandLineOf = (folder: string) => join(folder, 'bin', 'hearth.js');

let program: Promise<string> | undefined;

/**
 * Returns the command line of Hearth for tests that start processes. A test run builds the program once and installs
 * it without its source files, as an operator has it: it starts in half the time that the source files take, and a
 * run starts a hundred processes. Without a test run, returns the command line of this repository.
 */
export function builtHearth(): Promise<string> {
  const folder = process.env[folderVariable];
  program ??= folder ? sharedInstallation(join(folder, 'installed')) : Promise.resolve(commandLineOf(root));
  return program;
}

/** Builds the program, and installs it in a new folder. @returns the path of its command line */
export async function installHearth(folder: string): Promise<string> {
  mkdirSync(folder);
  for (const part of ['bin', 'package.json'])
    cpSync(join(root, part), join(folder, part), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  const build = [join(root, 'scripts', 'build.ts'), '--output', join(folder, 'dist')];
  await promisify(execFile)(process.execPath, build);
  return commandLineOf(folder);
}

/** Installs the program unless a process of the test run has done so; waits while one is doing it. */
async function sharedInstallation(folder: string): Promise<string> {
  const claim = `${folder}.unfinished`;
  while (!existsSync(folder)) {
    if (!makeFolder(claim)) {
      await delay(50);
      continue;
    }
    try {
      if (existsSync(folder)) break;
      const program = join(claim, 'installed');
      await installHearth(program);
      renameSync(program, folder);
    } finally {
      rmSync(claim, { recursive: true });
    }
  }
  return commandLineOf(folder);
}

/** Makes a folder. @returns false when it existed already */
function makeFolder(folder: string): boolean {
  try {
    mkdirSync(folder);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}
