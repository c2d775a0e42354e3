/**
 * Finds unclear words in comments and test titles: `node scripts/check-words.ts [file ...]`. Prints each one with its
 * place and what to write instead, and exits with 1 if there are any. Without files, it reads all files that git does not
 * ignore, and also finds committed files that `.gitignore` excludes.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { findUnclearWords } from './unclear-words.ts';

process.chdir(dirname(import.meta.dirname));
const files = process.argv.slice(2);
const listFiles = (...options: readonly string[]) =>
  execFileSync('git', ['ls-files', '--exclude-standard', ...options], { encoding: 'utf8' })
    .split('\n')
    .filter((file) => existsSync(file));
for (const file of files.length > 0 ? files : listFiles('--cached', '--others', '*.ts', '*.tsx')) {
  for (const { line, found, instead } of findUnclearWords(readFileSync(file, 'utf8'))) {
    console.error(`${file}:${line}: "${found}": ${instead}`);
    process.exitCode = 1;
  }
}
if (files.length === 0) {
  for (const file of listFiles('--cached', '--ignored')) {
    console.error(`${file}: .gitignore excludes this file, but it is committed`);
    process.exitCode = 1;
  }
}
