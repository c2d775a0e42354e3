import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

/** How many test files run in one process: loading the sources and compiling what is hot takes longer than most files' tests. */
const filesPerProcess = 24;

/** Test files that the runner takes for one. */
export interface TestGroups {
  readonly entries: readonly string[];
  remove(): void;
}

/**
 * Makes files that import several of `files` each, neighbours together. What is in a folder of `apart` stays on its own,
 * because it takes a minute or starts many processes.
 */
export function groupTests(files: readonly string[], apart: readonly string[]): TestGroups {
  const folder = mkdtempSync(join(tmpdir(), 'hearth-test-groups-'));
  const isApart = (file: string) => apart.some((start) => file.startsWith(start));
  const alone = files.filter(isApart);
  const groups: string[][] = [];
  for (const file of files.filter((file) => !isApart(file))) {
    const last = groups.at(-1);
    if (last && last.length < filesPerProcess) last.push(file);
    else groups.push([file]);
  }
  const entries = groups.map((group, index) => {
    const name = areaOf(group[0]!).replaceAll('/', '-');
    const entry = join(folder, `${String(index).padStart(3, '0')}-${name}.ts`);
    writeFileSync(entry, group.map((file) => `import '${pathToFileURL(resolve(file))}';\n`).join(''));
    return entry;
  });
  return {
    entries: [...alone, ...entries],
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** For instance `src/rooms` of `src/rooms/history/history.test.ts`. */
const areaOf = (file: string): string => dirname(file).split('/').slice(0, 2).join('/');
