/**
 * Makes an archive with everything that a server needs: the built program, compiled packages and Node.js. The target needs
 * no npm, compiler or network.
 *
 *     npm run package -- [--output FILE.tar.gz] [--uncompressed] [--folder FOLDER] [--without-node] [--built FOLDER]
 *
 * The archive is hearth-VERSION-PLATFORM.tar.gz by default, for the platform of this machine. `--folder` makes the folder
 * instead of an archive, and `--without-node` leaves Node.js out, for containers that have it. `--built` takes the program
 * from a folder instead of building it.
 */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';

const { values: options } = parseArgs({
  options: {
    output: { type: 'string' },
    uncompressed: { type: 'boolean' },
    folder: { type: 'string' },
    'without-node': { type: 'boolean' },
    built: { type: 'string' },
  },
});

const root = join(import.meta.dirname, '..');
const { name, version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const platform = `${process.platform}-${process.arch}`;

/** Packages with compiled code, which the bundle loads from node_modules (`external` in scripts/build.ts). */
const compiledPackages = ['@node-rs/bcrypt', 'sharp', 'sodium-native'];

/** Files that operators read or install. */
const documents = ['LICENSE', 'README.md', 'docs', 'contrib'];

/** The program `hearth` in the folder. */
const launcher = `#!/bin/sh
# Starts Hearth with the Node.js beside it.
self=$0
if [ -h "$self" ]; then self=$(readlink -f "$self"); fi
case $self in
  */*) here=\${self%/*} ;;
  *) here=. ;;
esac
HEARTH_COMMAND=\${HEARTH_COMMAND:-$0} exec "$here/bin/node" "$here/bin/hearth.js" "$@"
`;

/** Makes the folder with everything that the archive contains. */
function makeFolder(folder: string): void {
  mkdirSync(folder, { recursive: true });
  // Operators may have written the password of a database into a file of this folder.
  const filter = (path: string) => path !== join(root, 'contrib', 'container');
  for (const part of ['bin', ...documents])
    cpSync(join(root, part), join(folder, part), { recursive: true, filter });
  if (options.built) cpSync(options.built, join(folder, 'dist'), { recursive: true });
  else run(process.execPath, [join(root, 'scripts', 'build.ts'), '--output', join(folder, 'dist')]);
  for (const packageName of packagesFor(compiledPackages)) copyPackage(packageName, folder);
  const description = { name, version, type: 'module', private: true };
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(description, undefined, 2)}\n`);
  if (options['without-node']) return;
  cpSync(process.execPath, join(folder, 'bin', 'node'), { dereference: true });
  chmodSync(join(folder, 'bin', 'node'), 0o755);
  writeFileSync(join(folder, 'hearth'), launcher, { mode: 0o755 });
}

/** Returns those of the packages, and of their dependencies, that are installed on this platform. */
function packagesFor(names: readonly string[]): ReadonlySet<string> {
  const found = new Set<string>();
  const add = (packageName: string) => {
    const file = join(root, 'node_modules', packageName, 'package.json');
    if (found.has(packageName) || !existsSync(file)) return;
    found.add(packageName);
    const { dependencies = {}, optionalDependencies = {} } = JSON.parse(readFileSync(file, 'utf8'));
    for (const dependency of Object.keys({ ...dependencies, ...optionalDependencies })) add(dependency);
  };
  for (const packageName of names) add(packageName);
  return found;
}

/** Copies a package without the compiled code for other platforms. */
function copyPackage(packageName: string, folder: string): void {
  const from = join(root, 'node_modules', packageName);
  cpSync(from, join(folder, 'node_modules', packageName), {
    recursive: true,
    dereference: true,
    filter: (path) => basename(dirname(path)) !== 'prebuilds' || basename(path) === platform,
  });
}

function run(program: string, parameters: readonly string[]): void {
  execFileSync(program, parameters, { stdio: 'inherit' });
}

if (options.folder) makeFolder(resolve(options.folder));
else {
  const ending = options.uncompressed ? '.tar' : '.tar.gz';
  const archive = resolve(options.output ?? `${name}-${version}-${platform}${ending}`);
  const temporary = mkdtempSync(join(tmpdir(), 'hearth-package-'));
  try {
    const folder = `${name}-${version}`;
    makeFolder(join(temporary, folder));
    const owner = ['--owner=0', '--group=0', '--numeric-owner'];
    run('tar', [options.uncompressed ? '-cf' : '-czf', archive, ...owner, '-C', temporary, folder]);
    process.stdout.write(`${archive}\n`);
  } finally {
    rmSync(temporary, { recursive: true });
  }
}
