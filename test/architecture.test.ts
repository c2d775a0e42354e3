/**
 * The layers of the code (docs/ARCHITECTURE.md): which slice may import which, and how composition opens them. A new
 * slice needs a line in `tiers` and nothing else here.
 */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, it } from 'node:test';
import { migrations, slices, stateMigrations } from '../src/slices.ts';

/**
 * Slices by tier, lowest first. A slice may import the tiers below it and the slices of its own tier that are
 * listed after its name.
 */
const tiers: readonly Readonly<Record<string, readonly string[]>>[] = [
  { protocol: [] },
  { kernel: [] },
  { 'sync-contract': [] },
  {
    accounts: ['devices'],
    devices: [],
    'active-users': ['accounts', 'devices'],
    profiles: ['accounts'],
    'account-data': ['accounts'],
    filters: ['accounts'],
    capabilities: ['accounts', 'profiles'],
    media: [],
    'url-previews': ['media'],
    'federation-client': [],
    'identity-servers': [],
    'appservice-registry': ['accounts', 'devices'],
    mail: [],
    welcome: [],
    console: [],
  },
  { 'room-engine': [] },
  { 'room-federation': [] },
  { rooms: [] },
  {
    receipts: [],
    typing: [],
    presence: [],
    'to-device': [],
    e2ee: ['to-device'],
    push: ['receipts'],
    directory: [],
    search: [],
    relations: [],
    reports: [],
    voip: [],
    openid: [],
    'delayed-events': [],
    'thread-subscriptions': [],
    'third-party-invites': [],
    'third-party-ids': [],
    sso: [],
    'server-notices': [],
    statistics: [],
  },
  {
    sync: [],
    federation: [],
    appservices: [],
    pushers: [],
    admin: ['federation', 'pushers'],
    modules: [],
    oauth: [],
  },
];

/** Files that put the slices together, in order: each may import those before it, and all slices. */
const composition = [
  'slices.ts',
  'configuration.ts',
  'configuration',
  'composition',
  'homeserver.ts',
  'commands',
  'main.ts',
];

/** The only parts that may import a package. Packages without an entry may be imported anywhere. */
const packageOwners: Readonly<Record<string, readonly string[]>> = {
  '@11ty/nunjucks': ['kernel/templates'],
  aws4fetch: ['media'],
  cookie: ['kernel/http'],
  htmlparser2: ['url-previews'],
  'libphonenumber-js': ['third-party-ids'],
  nodemailer: ['mail'],
  kysely: ['kernel/database', 'kernel/jobs', 'kernel/streams', 'slices'],
  'node:sqlite': ['kernel/database'],
  pg: ['kernel/database'],
  pino: ['kernel/observability'],
  'prom-client': ['kernel/observability'],
  undici: ['kernel/outbound', 'commands'],
  yaml: ['kernel/config', 'configuration', 'commands', 'sso'],
  commander: ['commands'],
  sharp: ['media'],
  ssh2: ['composition'],
  'sodium-native': ['kernel/signing'],
  'fast-xml-parser': ['sso'],
  jose: ['sso'],
  'openid-client': ['sso'],
  '@node-saml/node-saml': ['sso'],
};

/** Uses of time, randomness and the network other than through the interfaces of the kernel. */
const ambientInputs =
  /\b(Date\.now|Math\.random|performance\.now|new Date\(\))|(?<=(?:await|return|void|[=(,>:?])\s*)fetch\(|(?<![.\w])(?:setTimeout|setInterval)\(/;

interface Import {
  readonly from: string;
  /** A path below `src`, or the name of a package. */
  readonly to: string;
  readonly isPackage: boolean;
}

const root = join(import.meta.dirname, '..', 'src');
const files = globSync('**/*.{ts,tsx}', { cwd: root }).sort();
const sources = new Map(files.map((file) => [file, readFileSync(join(root, file), 'utf8')]));
const imports = [...sources].flatMap(([file, text]) => importsOf(file, text));
const localImports = imports.filter(({ isPackage, to }) => !isPackage && !to.startsWith('..'));

function importsOf(file: string, text: string): Import[] {
  const specifiers = text.matchAll(/(?:\bfrom|^import|\bimport\()\s*'([^']+)'/gm);
  return [...specifiers].map(([, specifier]) => {
    const isPackage = !specifier!.startsWith('.');
    const to = isPackage ? specifier! : normalize(join(dirname(file), specifier!));
    return { from: file, to, isPackage };
  });
}

/** Returns the slice of a file; for a file of the composition, the entry of `composition` to which it belongs. */
const sliceOf = (file: string) => file.split('/', 1)[0]!;

/** Returns the slice of a file; for a file of the kernel, its part of the kernel. */
const partOf = (file: string) => (sliceOf(file) === 'kernel' ? file.split('/', 2).join('/') : sliceOf(file));

/** Files that run in browsers, where there is no kernel. */
const isForBrowsers = (path: string) => path.startsWith('console/browser/');

/** Packages that the pages for browsers may import. */
const browserPackages: ReadonlySet<string> = new Set(['preact', 'preact/hooks', 'uplot']);

const tierOf = (slice: string) => tiers.findIndex((tier) => slice in tier);

const isTest = (file: string) => file.endsWith('.test.ts') || file.includes('/test/');

/** The code that opens the slices. */
const openingSources = [...sources].filter(
  ([file]) => (file === 'homeserver.ts' || sliceOf(file) === 'composition') && !isTest(file),
);

const assertNone = (problems: readonly string[], rule: string) =>
  assert.deepEqual([...new Set(problems)], [], rule);

const describeImport = ({ from, to }: Import) => `${from} imports ${to}`;

describe('architecture', () => {
  it('assigns every file to a slice', () => {
    const unassigned = files.filter(
      (file) => tierOf(sliceOf(file)) === -1 && !composition.includes(sliceOf(file)),
    );
    assertNone(unassigned, 'every file must be in a slice that `tiers` names');
  });

  it('lets a slice import only lower tiers, and the slices of its own tier that `tiers` lists after its name', () => {
    assertNone(
      localImports.filter((found) => !mayImport(found)).map(describeImport),
      'a slice may import only lower tiers, and the slices of its own tier that `tiers` lists after its name',
    );
  });

  it('imports other slices through their index.ts only', () => {
    assertNone(
      localImports.filter((found) => !isThroughIndex(found)).map(describeImport),
      'outside a slice, only its index.ts may be imported',
    );
  });

  it('has no import cycle between slices or parts of the kernel', () => {
    const graph = new Map<string, Set<string>>();
    for (const { from, to } of localImports) {
      if (isTest(from) || partOf(from) === partOf(to)) continue;
      graph.set(partOf(from), (graph.get(partOf(from)) ?? new Set()).add(partOf(to)));
    }
    assert.deepEqual(findCycle(graph), undefined);
  });

  it('has no import cycle between folders that have the same parent folder', () => {
    const graph = new Map<string, Set<string>>();
    for (const { from, to } of localImports) {
      const folders = isTest(from) ? undefined : siblingFolders(from, to);
      if (folders) graph.set(folders[0], (graph.get(folders[0]) ?? new Set()).add(folders[1]));
    }
    assert.deepEqual(findCycle(graph), undefined);
  });

  it('has no import cycle between files', () => {
    const graph = new Map<string, Set<string>>();
    for (const { from, to } of localImports) {
      if (!isTest(from)) graph.set(from, (graph.get(from) ?? new Set()).add(to));
    }
    assert.deepEqual(findCycle(graph), undefined);
  });

  it('uses clock, randomness and network through the kernel only', () => {
    const offenders = [...sources].flatMap(([file, text]) => {
      if (sliceOf(file) === 'kernel' || isTest(file) || isForBrowsers(file)) return [];
      const found = ambientInputs.exec(withoutComments(text));
      return found === null ? [] : [`${file} uses ${found[0]}`];
    });
    assertNone(offenders, 'clock, randomness and network must be passed in');
  });

  it('keeps the pages that run in browsers apart from the server', () => {
    const offenders = imports.filter(({ from, to, isPackage }) => {
      if (isTest(from)) return false;
      if (!isForBrowsers(from)) return isForBrowsers(to);
      return isPackage ? !browserPackages.has(to) : !isForBrowsers(to);
    });
    assertNone(offenders.map(describeImport), 'pages import each other and their libraries only');
  });

  it('creates caches through the registry only', () => {
    const unregistered = [...sources].filter(
      ([file, text]) =>
        !file.startsWith('kernel/caches/') && /new (Cache|LRUCache)\b|from 'lru-cache'/.test(text),
    );
    assertNone(
      unregistered.map(([file]) => file),
      'use `CacheRegistry.create`, so that the cache has metrics, obeys `caches` and counts in the budget of bytes',
    );
  });

  it('imports each package that `packageOwners` lists only in the parts that it names', () => {
    const offenders = imports.filter(({ from, to, isPackage }) => {
      const allowed = packageOwners[to];
      return (
        isPackage && allowed !== undefined && !isTest(from) && !allowed.some((owner) => isOwner(owner, from))
      );
    });
    assertNone(
      offenders.map(describeImport),
      'only the parts that `packageOwners` names may import the package',
    );
  });

  it('lets the slice protocol import only packages that do no input or output', () => {
    const pure = new Set(['node:buffer', 'node:crypto', 're2js']);
    const offenders = imports.filter(
      ({ from, to, isPackage }) =>
        sliceOf(from) === 'protocol' && !isTest(from) && isPackage && !pure.has(to),
    );
    assertNone(offenders.map(describeImport), 'the slice protocol must do no input or output');
  });

  it('lists each migration, each manifest and each section of options once', () => {
    // `stateMigrations` are for a separate database of state groups: some are also in `migrations`, others are not.
    const applied = [...new Set([...migrations, ...stateMigrations].map(({ name }) => name))].sort();
    const declared = [...sources].flatMap(([file, text]) =>
      isTest(file)
        ? []
        : [...text.matchAll(/\bname: '([a-z0-9-]+\/\d{4}-[a-z0-9-]+)'/g)].map(([, name]) => name!),
    );
    assert.deepEqual(declared.sort(), applied, 'each migration must be in the manifest of its slice');
    const listedSlices = slices.map(({ name }) => name);
    const manifests = files.filter((file) => /^[a-z0-9-]+\/manifest\.ts$/.test(file)).map(sliceOf);
    assert.deepEqual(manifests.toSorted(), listedSlices.toSorted(), 'slices.ts must list each manifest');
    const sections = files.filter(
      (file) =>
        /^([a-z0-9-]+|kernel\/[a-z-]+)\/config\.ts$/.test(file) && /= section\(/.test(sources.get(file)!),
    );
    const listed = (file: string) => {
      const lister = sliceOf(file) === 'kernel' ? 'configuration.ts' : `${sliceOf(file)}/manifest.ts`;
      return localImports.some(({ from, to }) => from === lister && to === file);
    };
    assertNone(
      sections.filter((file) => !listed(file)),
      'each section of options must be in the manifest of its slice, or in configuration.ts if it belongs to the kernel',
    );
  });

  // The slice modules is opened before the slices that call modules. Its API offers services of these slices, which it
  // therefore receives later.
  it('gives each slice except modules everything that it needs when it is opened', () => {
    const calls = openingSources.filter(
      ([file, text]) =>
        /\.(register|attach|supply)\w*\(/.test(withoutComments(text)) && file !== 'composition/modules.ts',
    );
    assertNone(
      calls.map(([file]) => file),
      'a slice must not need a second call after the one that opens it',
    );
  });

  it('has in the composition no interface with more than 11 own and inherited fields, except in composition/kernel.ts', () => {
    const interfaces = openingSources.flatMap(([file, text]) => interfacesIn(file, text));
    const fieldsOf = ({ file, fields, parents }: FoundInterface): number =>
      parents.reduce((sum, parent) => {
        const candidates = interfaces.filter(({ name }) => name === parent);
        const found = candidates.find((candidate) => candidate.file === file) ?? candidates[0];
        return sum + (found === undefined ? 0 : fieldsOf(found));
      }, fields);
    const largeInterfaces = interfaces
      .filter((one) => one.file !== 'composition/kernel.ts' && fieldsOf(one) > 11)
      .map((one) => `${one.name} in ${one.file} has ${fieldsOf(one)}`);
    assert.ok(interfaces.some(({ name }) => name === 'Users'));
    assertNone(largeInterfaces, 'pass the slices that a function needs, not all of them');
  });
});

function mayImport({ from, to }: Import): boolean {
  const [imported, importer] = [sliceOf(to), sliceOf(from)];
  if (imported === importer) return true;
  const position = composition.indexOf(importer);
  if (position !== -1) return composition.indexOf(imported) < position;
  const tier = tierOf(importer);
  const importedTier = tierOf(imported);
  if (importedTier === -1) return false;
  return importedTier < tier || tiers[tier]?.[importer]?.includes(imported) === true;
}

/**
 * Whether an import follows the rule that only the `index.ts` of another slice, or of a part of the kernel, may be
 * imported. Tests may import any file. Files of the same slice may import each other, also files of different parts of
 * the kernel. There are three exceptions:
 * - `slices.ts` imports the `manifest.ts` of each slice, so that commands that only read options do not load the slices;
 * - `configuration.ts` imports the `config.ts` of parts of the kernel;
 * - `src/configuration/` imports files of `kernel/config` that a running server does not load.
 */
function isThroughIndex({ from, to }: Import): boolean {
  if (isTest(from) || sliceOf(from) === sliceOf(to) || composition.includes(sliceOf(to))) return true;
  const file = to.slice(partOf(to).length + 1);
  if (file === '' || file === 'index.ts') return true;
  if (sliceOf(from) === 'configuration') return partOf(to) === 'kernel/config';
  if (sliceOf(from) === 'slices.ts') return file === 'manifest.ts';
  return file === 'config.ts' && sliceOf(from) === 'configuration.ts';
}

/** An interface of the composition. */
interface FoundInterface {
  readonly file: string;
  readonly name: string;
  /** Number of fields without the inherited ones. */
  readonly fields: number;
  /** Names of the interfaces that it extends. */
  readonly parents: readonly string[];
}

function interfacesIn(file: string, text: string): FoundInterface[] {
  const found = withoutComments(text).matchAll(/^(?:export )?interface (\w+)([^{]*)\{\n(.*?)^\}/gms);
  return [...found].map(([, name, heading, body]) => ({
    file,
    name: name!,
    fields: body!.match(/^ {2}\S/gm)?.length ?? 0,
    parents: /\bextends (\w+(?:, \w+)*) $/.exec(heading!)?.[1]?.split(', ') ?? [],
  }));
}

/**
 * Returns the folders in the deepest common folder of two files that contain the one and the other file; `undefined`
 * when one of the files is directly in the common folder.
 */
function siblingFolders(file: string, otherFile: string): readonly [string, string] | undefined {
  const [names, otherNames] = [file.split('/').slice(0, -1), otherFile.split('/').slice(0, -1)];
  const depth = names.findIndex((name, index) => name !== otherNames[index]);
  if (depth === -1 || otherNames[depth] === undefined) return undefined;
  return [names.slice(0, depth + 1).join('/'), otherNames.slice(0, depth + 1).join('/')];
}

/** Whether a file belongs to an entry of `packageOwners`. The entry `slices` stands for all slices above the kernel. */
function isOwner(owner: string, file: string): boolean {
  if (owner === 'slices') return tierOf(sliceOf(file)) > 1;
  return partOf(file) === owner;
}

function findCycle(graph: ReadonlyMap<string, ReadonlySet<string>>): string[] | undefined {
  const done = new Set<string>();
  const visit = (part: string, path: readonly string[]): string[] | undefined => {
    if (path.includes(part)) return [...path.slice(path.indexOf(part)), part];
    if (done.has(part)) return undefined;
    for (const next of graph.get(part) ?? []) {
      const cycle = visit(next, [...path, part]);
      if (cycle !== undefined) return cycle;
    }
    done.add(part);
    return undefined;
  };
  for (const part of graph.keys()) {
    const cycle = visit(part, []);
    if (cycle !== undefined) return cycle;
  }
  return undefined;
}

const withoutComments = (text: string) =>
  text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\s)\/\/.*$/gm, '');
