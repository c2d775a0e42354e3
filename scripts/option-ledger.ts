import { globSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';

/** By the path of an option: the files with a test that proves the effect of the option and names it in its title. */
export type Proofs = ReadonlyMap<string, readonly string[]>;

const testCall =
  /\b(?:test|it|describe|suite)\(\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|`((?:[^`\\]|\\.)*)`)/g;
const optionMarker = /\[option: ((?:[^[\]]|\[\])+)\]/g;

/**
 * Returns the options in the markers of one test file's titles: `[option: bcrypt_rounds]`, or several paths
 * with commas. Reads the titles from the source; titles of `test.skip` and `test.todo` do not count.
 */
export function optionMarkersIn(source: string): string[] {
  const titles = [...source.matchAll(testCall)].map(
    ([, single, double, template]) => single ?? double ?? template ?? '',
  );
  const markers = titles.flatMap((title) => [...title.matchAll(optionMarker)].map(([, paths = '']) => paths));
  return markers.flatMap((paths) => paths.split(',')).map((path) => path.trim());
}

/** Collects the option markers of all tests in a repository. */
export function collectProofs(root: string): Proofs {
  const proofs = new Map<string, string[]>();
  const files = globSync('{src,test}/**/*.test.ts', { cwd: root }).toSorted();
  for (const file of files) {
    for (const path of new Set(optionMarkersIn(readFileSync(join(root, file), 'utf8')))) {
      proofs.set(path, [...(proofs.get(path) ?? []), relative(root, join(root, file))]);
    }
  }
  return proofs;
}

/**
 * Returns the problems of option markers: markers that name no counted option, and options that have lost the test that
 * proved them.
 */
export function ledgerProblems(
  proofs: Proofs,
  options: readonly { readonly path: string; readonly isCounted: boolean }[],
  provenBefore: readonly string[],
): string[] {
  const counted = new Set(options.filter((option) => option.isCounted).map(({ path }) => path));
  const notCounted = [...proofs].filter(([path]) => !counted.has(path));
  const lost = provenBefore.filter((path) => counted.has(path) && !proofs.has(path));
  return [
    ...notCounted.map(
      ([path, files]) => `${files.join(', ')}: ${path} is not an option that the ledger counts`,
    ),
    ...lost.map((path) => `${path} has lost the test that proved it`),
  ];
}

/**
 * Returns the ledger in Markdown: the options that are proven, with their tests, and those that are not in
 * force yet.
 * @param counted the paths of the options with `isCounted`
 */
export function ledgerPage(proofs: Proofs, counted: readonly string[]): string {
  const proven = counted.filter((path) => proofs.has(path));
  const others = counted.filter((path) => !proofs.has(path));
  return `# Options in force

${proven.length} of ${counted.length} options are proven: a test shows their effect and names them in its title. Options
that are not proven are read and checked; when the configuration sets one, the server logs a warning about its feature. This page is
generated from the titles of the tests; the second list may only shrink.

## Proven

${list(proven.map((path) => `\`${path}\`: ${proofs.get(path)?.join(', ')}`))}

## Not yet in force

${list(others.map((path) => `\`${path}\``))}
`;
}

/** Returns the module that lists the proven options for the server at run time. */
export function provenOptionsModule(proven: readonly string[]): string {
  const lines = proven.map((path) => `  '${path}',\n`).join('');
  return `/** Options whose effect a test proves. Generated from the titles of tests by \`scripts/generate-docs.ts\`. */
export const provenOptions: readonly string[] = [${lines === '' ? '' : `\n${lines}`}];
`;
}

function list(lines: readonly string[]): string {
  return lines.length === 0 ? 'None.' : lines.map((line) => `- ${line}`).join('\n');
}
