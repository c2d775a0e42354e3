import { globSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { HearthConfiguration } from '../../configuration.ts';
import { Findings, readSourceFiles } from '../../kernel/config/index.ts';

/** Matches the names of options whose values are paths of files or directories that the configuration needs. */
const pathMember =
  /(_path|_paths|_file|_files|_dir|_directory)$|^log_config$|^federation_custom_ca_list$|^ssl(root)?(cert|key)$/;

/** Options whose values are paths that the server itself writes to; these are not files of the configuration. */
const notConfiguration = new Set(['pid_file', 'media_store_path']);

/**
 * Returns the absolute paths of all files of a configuration: its documents, and the keys, certificates, secrets,
 * templates and other files that its options name.
 * @param paths files and directories as given with `-c`
 */
export function filesOfConfiguration(paths: readonly string[], values: HearthConfiguration): string[] {
  const { sources } = readSourceFiles(paths, new Findings());
  const referenced = pathsIn(values);
  const files = [...sources.map(({ file }) => file), ...referenced].flatMap(filesAt);
  return [...new Set(files.map((file) => resolve(file)))];
}

function pathsIn(value: unknown, member = ''): string[] {
  if (typeof value === 'string')
    return pathMember.test(member) && !notConfiguration.has(member) ? [value] : [];
  if (Array.isArray(value)) return value.flatMap((entry) => pathsIn(entry, member));
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => pathsIn(inner, name));
}

function filesAt(path: string): string[] {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isFile()) return [path];
  if (!found?.isDirectory()) return [];
  return globSync('**/*', { cwd: path, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name));
}
