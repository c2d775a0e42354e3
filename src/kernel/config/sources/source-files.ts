import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Findings } from '../problems.ts';

/** The text of a configuration file, and its name for messages. */
export interface ConfigurationSource {
  readonly file: string;
  readonly text: string;
}

/** The sources found at some paths. `directory` is the first path if it is a directory, otherwise the directory that contains it. */
export interface SourceFiles {
  readonly sources: readonly ConfigurationSource[];
  readonly directory: string;
}

/**
 * Reads configuration files. A directory means the `.yaml` and `.yml` files directly in it, sorted by name.
 * Reports files that cannot be read.
 */
export function readSourceFiles(paths: readonly string[], findings: Findings): SourceFiles {
  const files = paths.flatMap((path) => filesAt(path, findings));
  const sources = files.flatMap((file) => {
    const text = attempt(file, findings, () => decode(readFileSync(file)));
    return text === undefined ? [] : [{ file, text }];
  });
  const [first = '.'] = paths;
  return { sources, directory: isDirectory(first) ? first : dirname(first) };
}

function filesAt(path: string, findings: Findings): string[] {
  if (!isDirectory(path)) return [path];
  const names = attempt(path, findings, () => readdirSync(path)) ?? [];
  return names
    .filter((name) => /\.ya?ml$/.test(name) && !name.startsWith('.'))
    .toSorted()
    .map((name) => join(path, name));
}

/** Whether a path is a directory. False if this user may not access it: reading the path then reports the problem. */
function isDirectory(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  } catch {
    return false;
  }
}

/** Decodes UTF-8. @throws TypeError for other bytes, instead of replacing them */
function decode(bytes: Uint8Array): string {
  return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
}

function attempt<T>(file: string, findings: Findings, action: () => T): T | undefined {
  try {
    return action();
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    const reasons: Record<string, string> = {
      ENOENT: 'does not exist',
      EACCES: 'cannot be read: permission is denied',
      ERR_ENCODING_INVALID_ENCODED_DATA: 'is not UTF-8 text',
    };
    findings.error('', `the configuration file ${file} ${reasons[code] ?? `cannot be read (${code})`}`);
    return undefined;
  }
}
