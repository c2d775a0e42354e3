import { globSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';

/** Options with the test files whose titles claim to prove their effect. */
export type Proofs = ReadonlyMap<string, readonly string[]>;

const testCall =
  /\b(?:test|it|describe|suite)\(\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|`((?:[^`\\]|\\.)*)`)/g;
const optionMarker = /\[option: ((?:[^[\]]|\[\])+)\]/g;

/**
 * The claims in the titles of one test file: `[option: bcrypt_rounds]`, or several paths with commas.
 * Titles are read from the source; those of tests that are skipped or put off do not count.
 */
export function optionMarkersIn(source: string): string[] {
  const titles = [...source.matchAll(testCall)].map(
    ([, single, double, template]) => single ?? double ?? template ?? '',
  );
  const claims = titles.flatMap((title) => [...title.matchAll(optionMarker)].map(([, paths = '']) => paths));
  return claims.flatMap((paths) => paths.split(',')).map((path) => path.trim());
}

/** All claims of the tests in a repository. */
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

/** What is wrong with the claims: options that do not exist, that only hold others, or that lost their proof. */
export function ledgerProblems(
  proofs: Proofs,
  options: readonly { readonly path: string; readonly counted: boolean }[],
  provenBefore: readonly string[],
): string[] {
  const counted = new Set(options.filter((option) => option.counted).map(({ path }) => path));
  const claimed = [...proofs].filter(([path]) => !counted.has(path));
  const lost = provenBefore.filter((path) => counted.has(path) && !proofs.has(path));
  return [
    ...claimed.map(([path, files]) => `${files.join(', ')}: ${path} is no option that is proven by itself`),
    ...lost.map((path) => `${path} was proven by a test and no longer is`),
  ];
}

/** The ledger in Markdown: which options are proven by which tests, and which are not yet in force. */
export function ledgerPage(proofs: Proofs, counted: readonly string[]): string {
  const proven = counted.filter((path) => proofs.has(path));
  const others = counted.filter((path) => !proofs.has(path));
  return `# Options in force

${proven.length} of ${counted.length} options are proven: a test shows their effect and names them in its title. The
others are read and checked, and the server says at start when a file gives one of them. This page is
generated from the titles of the tests; the second list may only shrink.

## Proven

${list(proven.map((path) => `\`${path}\`: ${proofs.get(path)?.join(', ')}`))}

## Not yet in force

${list(others.map((path) => `\`${path}\``))}
`;
}

/** The module that tells the server at run time which options are proven. */
export function provenOptionsModule(proven: readonly string[]): string {
  const lines = proven.map((path) => `  '${path}',\n`).join('');
  return `/** Options whose effect a test proves. Generated from the titles of tests by \`scripts/generate-docs.ts\`. */
export const provenOptions: readonly string[] = [${lines === '' ? '' : `\n${lines}`}];
`;
}

function list(lines: readonly string[]): string {
  return lines.length === 0 ? 'None.' : lines.map((line) => `- ${line}`).join('\n');
}
