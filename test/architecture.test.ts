/**
 * The layers of the house (docs/ARCHITECTURE.md): who may import whom. A new slice gets a line in `tiers`; everything
 * else follows.
 */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, it } from 'node:test';

/** Slices by tier, lowest first. A slice may import all below it, and beside it those that are named here. */
const tiers: readonly Readonly<Record<string, readonly string[]>>[] = [
  { protocol: [] },
  { kernel: [] },
  {
    accounts: ['devices'],
    devices: [],
    profiles: ['accounts'],
    'account-data': ['accounts'],
    filters: ['accounts'],
    capabilities: ['accounts', 'profiles'],
    media: [],
    'federation-client': [],
    'identity-servers': [],
    welcome: [],
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
    'server-notices': [],
  },
  { sync: [], federation: [], appservices: [], admin: [], sso: [], modules: [] },
];

/** Files that put the slices together, in an order of their own: each may import those before it. */
const composition = [
  'configuration.ts',
  'configuration',
  'composition',
  'homeserver.ts',
  'commands',
  'main.ts',
];

/** Who alone may import a package. */
const packageOwners: Readonly<Record<string, readonly string[]>> = {
  'find-my-way': ['kernel/http'],
  kysely: ['kernel/database', 'kernel/jobs', 'kernel/streams', 'slices'],
  'node:sqlite': ['kernel/database'],
  pg: ['kernel/database'],
  pino: ['kernel/observability'],
  'prom-client': ['kernel/observability'],
  undici: ['kernel/outbound', 'commands'],
  yaml: ['kernel/config', 'configuration', 'commands'],
  commander: ['commands'],
  sharp: ['media'],
  'sodium-native': ['kernel/signing'],
};

/** Time, chance and the network are passed in; they are taken from the platform in the kernel only. */
const ambientInputs =
  /\b(Date\.now|Math\.random|performance\.now|new Date\(\))|(?<=(?:await|return|void|[=(,>:?])\s*)fetch\(|(?<![.\w])(?:setTimeout|setInterval)\(/;

interface Import {
  readonly from: string;
  /** A path below `src`, or the name of a package. */
  readonly to: string;
  readonly isPackage: boolean;
}

const root = join(import.meta.dirname, '..', 'src');
const files = globSync('**/*.ts', { cwd: root }).sort();
const sources = new Map(files.map((file) => [file, readFileSync(join(root, file), 'utf8')]));
const imports = [...sources].flatMap(([file, text]) => importsOf(file, text));
const between = imports.filter(({ isPackage, to }) => !isPackage && !to.startsWith('..'));

function importsOf(file: string, text: string): Import[] {
  const specifiers = text.matchAll(/(?:\bfrom|^import|\bimport\()\s*'([^']+)'/gm);
  return [...specifiers].map(([, specifier]) => {
    const isPackage = !specifier!.startsWith('.');
    const to = isPackage ? specifier! : normalize(join(dirname(file), specifier!));
    return { from: file, to, isPackage };
  });
}

/** The slice or file of the composition that a file belongs to. */
const sliceOf = (file: string) => file.split('/', 1)[0]!;

/** The slice, or the part of the kernel. */
const partOf = (file: string) => (sliceOf(file) === 'kernel' ? file.split('/', 2).join('/') : sliceOf(file));

const tierOf = (slice: string) => tiers.findIndex((tier) => slice in tier);

const isTest = (file: string) => file.endsWith('.test.ts') || file.includes('/test/');

const assertNone = (problems: readonly string[], rule: string) =>
  assert.deepEqual([...new Set(problems)], [], rule);

const name = ({ from, to }: Import) => `${from} imports ${to}`;

describe('architecture', () => {
  it('has every file in a slice', () => {
    const strays = files.filter(
      (file) => tierOf(sliceOf(file)) === -1 && !composition.includes(sliceOf(file)),
    );
    assertNone(strays, 'a file must be in a slice that `tiers` names');
  });

  it('never imports upward', () => {
    assertNone(between.filter((found) => !mayImport(found)).map(name), 'slices import what is below them');
  });

  it('imports other parts through their face', () => {
    assertNone(
      between.filter((found) => !isThroughIndex(found)).map(name),
      'outside a slice only its index.ts is known',
    );
  });

  it('has no cycle between parts', () => {
    const graph = new Map<string, Set<string>>();
    for (const { from, to } of between) {
      if (isTest(from) || partOf(from) === partOf(to)) continue;
      graph.set(partOf(from), (graph.get(partOf(from)) ?? new Set()).add(partOf(to)));
    }
    assert.deepEqual(findCycle(graph), undefined);
  });

  it('has no cycle between files', () => {
    const graph = new Map<string, Set<string>>();
    for (const { from, to } of between) {
      if (!isTest(from)) graph.set(from, (graph.get(from) ?? new Set()).add(to));
    }
    assert.deepEqual(findCycle(graph), undefined);
  });

  it('takes clock, randomness and network from the kernel', () => {
    const offenders = [...sources].flatMap(([file, text]) => {
      if (sliceOf(file) === 'kernel' || isTest(file)) return [];
      const found = ambientInputs.exec(withoutComments(text));
      return found === null ? [] : [`${file} uses ${found[0]}`];
    });
    assertNone(offenders, 'clock, randomness and network are passed in');
  });

  it('lets caches take memory as they fill', () => {
    const reserving = [...sources].filter(
      ([file, text]) =>
        !file.startsWith('kernel/caches/') && /new LRUCache(<[^()]*>)?\(\s*\{\s*max\b/.test(text),
    );
    assertNone(
      reserving.map(([file]) => file),
      'a cache of so many entries is a `RecentlyUsed`',
    );
  });

  it('leaves packages to their owners', () => {
    const offenders = imports.filter(({ from, to, isPackage }) => {
      const allowed = packageOwners[to];
      return (
        isPackage && allowed !== undefined && !isTest(from) && !allowed.some((owner) => isOwner(owner, from))
      );
    });
    assertNone(offenders.map(name), 'only its owner knows a package');
  });

  it('keeps the protocol free of input and output', () => {
    const pure = new Set(['node:buffer', 'node:crypto', 're2js']);
    const offenders = imports.filter(
      ({ from, to, isPackage }) =>
        sliceOf(from) === 'protocol' && !isTest(from) && isPackage && !pure.has(to),
    );
    assertNone(offenders.map(name), 'the protocol is pure');
  });
});

function mayImport({ from, to }: Import): boolean {
  const [lower, upper] = [sliceOf(to), sliceOf(from)];
  if (lower === upper) return true;
  const place = composition.indexOf(upper);
  if (place !== -1) return composition.indexOf(lower) < place;
  const tier = tierOf(upper);
  const below = tierOf(lower);
  return below !== -1 && (below < tier || tiers[tier]?.[upper]?.includes(lower) === true);
}

/**
 * Inside the kernel and the protocol files may be imported directly. The list of all sections needs the sections only,
 * and takes them from the `config.ts` of each slice, which imports nothing else of it. What describes the sections is
 * not part of `kernel/config`'s face, so that a server does not load it.
 */
function isThroughIndex({ from, to }: Import): boolean {
  if (isTest(from) || sliceOf(from) === sliceOf(to) || composition.includes(sliceOf(to))) return true;
  const file = to.slice(partOf(to).length + 1);
  if (file === '' || file === 'index.ts') return true;
  if (sliceOf(from) === 'configuration') return partOf(to) === 'kernel/config';
  return file === 'config.ts' && sliceOf(from) === 'configuration.ts';
}

/** `slices` are those above the kernel, whose stores hold their SQL. */
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
