import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';

const root = join(import.meta.dirname, '..');
const pages = [
  'README.md',
  ...globSync('docs/**/*.md', { cwd: root, exclude: ['docs/generated/**'] }),
].sort();
const sources = globSync('{bench,bin,scripts,src,test,.ci}/**/*', { cwd: root });
const code = globSync('{bench,scripts,src,test}/**/*.ts', { cwd: root });
const scripts = new Set(['ci', 'start', ...Object.keys(readJson('package.json').scripts)]);
const decisions = new Set(
  globSync('docs/decisions/*.md', { cwd: root }).map((file) => file.match(/\d{4}/)?.[0]),
);

function readJson(file: string): { readonly scripts: Readonly<Record<string, string>> } {
  return JSON.parse(readFileSync(join(root, file), 'utf8')) as ReturnType<typeof readJson>;
}

const read = (file: string) => readFileSync(join(root, file), 'utf8');

/**
 * Returns `found`, the number of matches of `find`, and `problems`, the matches that are not valid, each with its file.
 */
function findProblems(
  files: readonly string[],
  find: RegExp,
  isValid: (found: string, file: string) => boolean,
): { readonly found: number; readonly problems: readonly string[] } {
  const matches = files.flatMap((file) =>
    [...read(file).matchAll(find)].map(([, found = '']) => ({ file, found })),
  );
  const problems = matches.filter(({ file, found }) => !isValid(found, file));
  return { found: matches.length, problems: problems.map(({ file, found }) => `${file}: ${found}`) };
}

/**
 * Asserts that there are no problems and at least `minFound` matches, so that a change of style cannot
 * disable the test.
 */
function assertNoProblems({ found, problems }: ReturnType<typeof findProblems>, minFound: number): void {
  assert.deepEqual(problems, []);
  assert.ok(found >= minFound, `only ${found} matches were found`);
}

describe('documentation', () => {
  it('links only to pages that exist', () => {
    const links = findProblems(pages, /\]\((?!https?:)([^)#]+)[^)]*\)/g, (target, file) =>
      existsSync(join(root, dirname(file), target)),
    );
    assertNoProblems(links, 10);
  });

  it('names only files and folders that exist', () => {
    const inRoot = /`(?:node )?((?:src|test|docs|scripts|bench|bin|\.ci)\/[^\s`]+)[^`]*`/g;
    const paths = findProblems(pages, inRoot, (path) => globSync(path, { cwd: root }).length > 0);
    assertNoProblems(paths, 30);
    const parts = findProblems(pages, /`([\w-]+(?:\/[\w-]+)*\/|[\w/.-]+\.ts)`/g, (path) => {
      const tail = `/${path.replace(/\/$/, '')}`;
      return sources.some((source) => `/${source}`.endsWith(tail));
    });
    assertNoProblems(parts, 30);
  });

  it('names only interoperability tests that exist', () => {
    const rows = read('docs/interoperability.md').matchAll(/^\|[^|]+\|([^|]*`[^|]*)\|$/gm);
    const [, ...cells] = [...rows].map(([, tests = '']) => tests);
    const names = cells.flatMap((tests) => [...tests.matchAll(/`([\w-]+)`/g)].map(([, name = '']) => name));
    assert.deepEqual(
      names.filter((name) => !existsSync(join(root, `test/interop/${name}.test.ts`))),
      [],
    );
    assert.ok(names.length >= 20, `only ${names.length} names were found`);
  });

  it('names only npm commands that package.json has', () => {
    const commands = findProblems(pages, /\bnpm (?:run )?(?:--silent )?([\w:]+)/g, (command) =>
      scripts.has(command),
    );
    assertNoProblems(commands, 10);
  });

  it('quotes only log messages that the server writes, in the operating guide', () => {
    const written = globSync('src/**/*.ts', { cwd: root }).map(read).join('\n');
    const messages = findProblems(['docs/operating.md'], /`([A-Z][a-z]* [^`:]+)/g, (message) =>
      written.includes(message),
    );
    assertNoProblems(messages, 10);
  });

  it('refers only to decisions that exist, in pages and comments', () => {
    const mentioned = findProblems([...pages, ...code], /\bdecisions? (\d{4})\b/gi, (number) =>
      decisions.has(number),
    );
    assertNoProblems(mentioned, 50);
  });
});
