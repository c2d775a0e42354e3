import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

/**
 * Number of test files per process for the files in `test/`, which test whole servers. A process runs many files, because
 * loading the sources and compiling hot code takes longer than the tests of most files.
 */
const filesOfServers = 40;

/**
 * Limits of the number of test files per process for the files in `src/`, which test slices. They run after the tests of
 * whole servers, in groups that become smaller, so that all processes end at about the same time.
 */
const filesOfSlices = { max: 90, min: 32 };

/** The share of the remaining test files of slices that the next group has, within the limits `filesOfSlices`. */
const shareOfNextGroup = 1 / 4;

const inThisFolder = (name: string): string => pathToFileURL(join(import.meta.dirname, name)).href;
const withoutAsyncTracking = inThisFolder('without-async-tracking.ts');
const watchdog = inThisFolder('test-watchdog.ts');

/** The files to pass to the test runner. */
export interface TestGroups {
  /** Paths of the created files, in the order in which they are to run. */
  readonly entries: readonly string[];
  /** Deletes the created files. */
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
  const sliceTests = grouped.filter((file) => !isOfServer(file));
  groups.push(...divided(grouped.filter(isOfServer), () => filesOfServers));
  groups.push(...divided(sliceTests, sizeForSlices));
  const entries = groups.map((group, index) => {
    const name = areaOf(group[0]!).replaceAll('/', '-');
    const entry = join(folder, `${String(index).padStart(3, '0')}-${name}.ts`);
    const imports = join(folder, 'imports', basename(entry));
    writeFileSync(imports, group.map((file) => `import '${pathToFileURL(resolve(file))}';\n`).join(''));
    // `without-async-tracking` must run before `node:test` is loaded. Static imports of the tests would load it first.
    const first = [withoutAsyncTracking, watchdog].map((module) => `await import('${module}');\n`).join('');
    writeFileSync(entry, `${first}await import('${pathToFileURL(imports)}');\n`);
    return entry;
  });
  return {
    entries,
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** Divides files into groups. @param sizeFor returns the size of the next group for the number of remaining files */
function divided(files: readonly string[], sizeFor: (remaining: number) => number): string[][] {
  const groups: string[][] = [];
  for (let start = 0; start < files.length; ) {
    const end = start + sizeFor(files.length - start);
    groups.push(files.slice(start, end));
    start = end;
  }
  return groups;
}

function sizeForSlices(remaining: number): number {
  const { min, max } = filesOfSlices;
  return Math.min(max, Math.max(min, Math.ceil(remaining * shareOfNextGroup)));
}

/** Returns for instance `src/rooms` for `src/rooms/history/history.test.ts`. */
const areaOf = (file: string): string => dirname(file).split('/').slice(0, 2).join('/');
