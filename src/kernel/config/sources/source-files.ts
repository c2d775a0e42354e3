import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Findings } from '../problems.ts';
import type { ConfigurationSource } from '../reading/load.ts';

/** The files behind some paths, and the directory in which the first of them is. */
export interface SourceFiles {
  readonly sources: readonly ConfigurationSource[];
  readonly directory: string;
}

/**
 * Reads configuration files. A directory stands for the `.yaml` and `.yml` files in it (not in
 * directories below it), in the order of their names. What cannot be read is reported.
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

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

/** Throws when the bytes are not UTF-8, rather than reading something else than was written. */
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
      ERR_ENCODING_INVALID_ENCODED_DATA: 'is not a text in UTF-8',
    };
    findings.error('', `the configuration file ${file} ${reasons[code] ?? `cannot be read (${code})`}`);
    return undefined;
  }
}
