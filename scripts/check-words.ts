/**
 * Keeps riddles out of comments and test titles: `node scripts/check-words.ts [file ...]`. Prints each place and exits
 * with 1 when there are any. The words say what to write instead.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { findUnclearWords } from './unclear-words.ts';

process.chdir(dirname(import.meta.dirname));
const given = process.argv.slice(2);
const tracked = () =>
  execFileSync('git', ['ls-files', '-co', '--exclude-standard', '*.ts'], { encoding: 'utf8' })
    .trim()
    .split('\n');
const problems = (given.length > 0 ? given : tracked()).flatMap((file) =>
  findUnclearWords(readFileSync(file, 'utf8')).map(
    ({ line, found, instead }) => `${file}:${line}: "${found}": ${instead}`,
  ),
);
for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exitCode = 1;
