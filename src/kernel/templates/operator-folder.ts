import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { StartFailure } from '../start-failure.ts';

/**
 * Returns the absolute path of a folder with templates of the operator.
 * @param option the path of the option that names the folder
 * @throws StartFailure when there is no such folder, or it cannot be read: the built-in templates would be used in its place
 */
export function operatorFolder(option: string, path: string): string {
  const folder = resolve(path);
  if (!isDirectory(option, folder)) throw new StartFailure(`${option}: there is no directory ${folder}`);
  return folder;
}

function isDirectory(option: string, folder: string): boolean {
  try {
    return statSync(folder, { throwIfNoEntry: false })?.isDirectory() ?? false;
  } catch (error) {
    throw new StartFailure(`${option}: ${(error as Error).message}`, { cause: error });
  }
}
