/**
 * Finds unclear words in comments and test titles: `node scripts/check-words.ts [--update] [file ...]`. Prints each one
 * with its place and what to write instead, and exits with 1 if there are any. `unclear-words.json` says how many are
 * still allowed in a file; `--update` lowers these numbers to the numbers of unclear words in the files. Without files, it
 * also finds committed files that `.gitignore` excludes.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { findUnclearWords } from './unclear-words.ts';

process.chdir(dirname(import.meta.dirname));
const list = 'scripts/unclear-words.json';
const isUpdate = process.argv[2] === '--update';
const files = process.argv.slice(isUpdate ? 3 : 2);
const listFiles = (...options: readonly string[]) =>
  execFileSync('git', ['ls-files', '--exclude-standard', ...options], { encoding: 'utf8' })
    .split('\n')
    .filter((file) => existsSync(file));
const trackedFiles = () => listFiles('-co', '*.ts', '*.tsx');
const allowed = JSON.parse(readFileSync(list, 'utf8')) as Readonly<Record<string, number>>;
const counts: Record<string, number> = {};
for (const file of files.length > 0 ? files : trackedFiles()) {
  const words = findUnclearWords(readFileSync(file, 'utf8'));
  if (words.length > 0) counts[file] = words.length;
  if (isUpdate || (files.length === 0 && words.length <= (allowed[file] ?? 0))) continue;
  for (const { line, found, instead } of words) console.error(`${file}:${line}: "${found}": ${instead}`);
  if (words.length > 0) process.exitCode = 1;
}
if (files.length === 0) {
  for (const file of listFiles('-ci')) {
    console.error(`${file}: .gitignore excludes this file, but it is committed`);
    process.exitCode = 1;
  }
}
if (isUpdate) {
  const entries = Object.entries(allowed)
    .map(([file, count]) => [file, Math.min(count, counts[file] ?? 0)] as const)
    .filter(([, count]) => count > 0);
  writeFileSync(list, `${JSON.stringify(Object.fromEntries(entries), undefined, 2)}\n`);
}
