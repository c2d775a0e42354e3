import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

/**
 * Test files per process. Loading the sources and compiling hot code takes longer than the tests of most
 * files; those of whole servers, in `test/`, take longer than that.
 */
const filesPerProcess = (file: string) => (file.startsWith('test/') ? 12 : 24);

const withoutAsyncTracking = pathToFileURL(join(import.meta.dirname, 'without-async-tracking.ts')).href;

/** The files to pass to the test runner. */
export interface TestGroups {
  readonly entries: readonly string[];
  remove(): void;
}

/**
 * Creates files that import several neighbouring test files each. Test files whose path begins with one of
 * `ungrouped` run on their own, because they take a minute or start many processes. The longest come first, so that
 * all processors have work until the end: those that run alone, then tests of whole servers. The names of the entries
 * begin with numbers, because the test runner sorts them.
 */
export function groupTests(files: readonly string[], ungrouped: readonly string[]): TestGroups {
  const folder = mkdtempSync(join(tmpdir(), 'hearth-test-groups-'));
  mkdirSync(join(folder, 'imports'));
  const isUngrouped = (file: string) => ungrouped.some((start) => file.startsWith(start));
  const isOfServer = (file: string) => file.startsWith('test/');
  const grouped = files.filter((file) => !isUngrouped(file));
  const groups = files.filter(isUngrouped).map((file) => [file]);
  const alone = groups.length;
  for (const file of [...grouped.filter(isOfServer), ...grouped.filter((file) => !isOfServer(file))]) {
    const last = groups.slice(alone).at(-1);
    if (last && last.length < filesPerProcess(last[0]!)) last.push(file);
    else groups.push([file]);
  }
  const entries = groups.map((group, index) => {
    const name = areaOf(group[0]!).replaceAll('/', '-');
    const entry = join(folder, `${String(index).padStart(3, '0')}-${name}.ts`);
    const imports = join(folder, 'imports', basename(entry));
    writeFileSync(imports, group.map((file) => `import '${pathToFileURL(resolve(file))}';\n`).join(''));
    // A static import would load `node:test` before anything is evaluated.
    writeFileSync(entry, `import '${withoutAsyncTracking}';\nawait import('${pathToFileURL(imports)}');\n`);
    return entry;
  });
  return {
    entries,
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** Returns for instance `src/rooms` for `src/rooms/history/history.test.ts`. */
const areaOf = (file: string): string => dirname(file).split('/').slice(0, 2).join('/');
