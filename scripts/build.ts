/**
 * Builds dist/: the program, and the programs of its threads and processes. Each is one file together with its libraries.
 * Modules that a program imports only when it needs them are in further files. Packages with compiled code stay in
 * node_modules.
 *
 *     node scripts/build.ts [--if-changed] [--output FOLDER]
 *
 * With `--if-changed`, does nothing when the built program is up to date, or when esbuild is not installed, as in an
 * installation without development dependencies: the server then runs from its source files. FOLDER is dist/ by default.
 */
import { cpSync, globSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { parseArgs } from 'node:util';
import type { Plugin } from 'esbuild';
import { builtProgram } from '../bin/built-program.js';
import { buildBundle } from '../src/console/bundle.ts';

const { values: options } = parseArgs({
  options: { 'if-changed': { type: 'boolean' }, output: { type: 'string' } },
});
if (options['if-changed'] && builtProgram()) process.exit();
const { build } = await import('esbuild').catch((error: unknown) => {
  if (options['if-changed']) process.exit();
  throw error;
});

const root = join(import.meta.dirname, '..');
const source = join(root, 'src');
const output = resolve(options.output ?? join(root, 'dist'));
/** The folder to build in. It is renamed to `output` when it is complete, so that a server never starts an incomplete program. */
const unfinished = `${output}.unfinished`;

/** Programs, relative to src/: the server, and the programs that `SpareThreads` and `TaskProcesses` start. */
const programs = [
  'main.ts',
  'kernel/signing/worker.ts',
  'kernel/database/sqlite/worker.ts',
  'kernel/database/sqlite/copy-thread.ts',
  'media/thumbnails/image-process.ts',
  'url-previews/pages/page-process.ts',
  'sso/saml/metadata-thread.ts',
];

/**
 * Modules that stay out of the bundles: packages that load compiled code from their own folder; optional modules, among
 * them the compiled parts of ssh2; and esbuild, which a built program does not need.
 */
const external = [
  '@node-rs/bcrypt',
  'esbuild',
  'pg-native',
  'sharp',
  'sodium-native',
  'cpu-features',
  '*.node',
];

/** Defines `require`, with which the CommonJS libraries in a bundle load Node's own modules. */
const banner =
  "import { createRequire as createBundleRequire } from 'node:module'; const require = createBundleRequire(import.meta.url);";

/**
 * Makes `import.meta.url` the address that a module would have in dist/ if it were a file of its own, because modules find
 * templates, threads and package.json relative to themselves.
 */
const ownAddresses = (program: string): Plugin => ({
  name: 'own-addresses',
  setup({ onLoad }) {
    onLoad({ filter: /\.ts$/ }, ({ path }) => {
      const text = readFileSync(path, 'utf8');
      if (!path.startsWith(source) || !text.includes('import.meta.url')) return undefined;
      const place = relative(dirname(join(source, program)), path)
        .split(sep)
        .join('/')
        .replace(/\.ts$/, '.js');
      const address = `new URL(${JSON.stringify(`./${place}`)}, import.meta.url).href`;
      return { contents: text.replaceAll('import.meta.url', address), loader: 'ts' };
    });
  },
});

/** The parts of undici that the program uses: loading all of undici takes 13 MB more memory. */
const undiciParts: Plugin = {
  name: 'undici-parts',
  setup({ onResolve, onLoad }) {
    const namespace = 'undici-parts';
    onResolve({ filter: /^undici$/ }, () => ({ path: 'undici', namespace }));
    onLoad({ filter: /.*/, namespace }, () => ({
      resolveDir: root,
      contents: `
        import Dispatcher from 'undici/lib/dispatcher/dispatcher.js';
        import request from 'undici/lib/api/api-request.js';
        Dispatcher.prototype.request = request;
        export { default as buildConnector } from 'undici/lib/core/connect.js';
        export { default as Client } from 'undici/lib/dispatcher/client.js';
        export { default as Pool } from 'undici/lib/dispatcher/pool.js';`,
    }));
  },
};

/**
 * Loads `node:http` with `require`: an import reads all its exports, and `http.WebSocket` loads the copy of undici that is part of
 * Node, which takes 13 MB of memory.
 */
const httpWithoutWebSocket: Plugin = {
  name: 'http-without-web-socket',
  setup({ onResolve, onLoad }) {
    const namespace = 'http-without-web-socket';
    onResolve({ filter: /^(node:)?http$/ }, ({ kind }) =>
      kind === 'import-statement' ? { path: 'node:http', namespace } : undefined,
    );
    onLoad({ filter: /.*/, namespace }, () => ({ contents: "module.exports = require('node:http');" }));
  },
};

/**
 * Gives CommonJS packages that are imported dynamically the named exports that Node finds in them: esbuild puts such a
 * package into a file of its own, which has a default export only.
 */
const namesOfCommonJs: Plugin = {
  name: 'names-of-common-js',
  setup({ onResolve, onLoad }) {
    const namespace = 'names-of-common-js';
    onResolve({ filter: /^[^./]/ }, async ({ path, kind }) => {
      if (kind !== 'dynamic-import' || isBuiltin(path) || external.includes(path)) return undefined;
      return 'module.exports' in (await import(path)) ? { path, namespace } : undefined;
    });
    onLoad({ filter: /.*/, namespace }, async ({ path }) => {
      const names = Object.keys(await import(path)).filter(
        (name) => /^[a-z_$][\w$]*$/i.test(name) && name !== 'default',
      );
      return {
        resolveDir: root,
        contents: `
          import * as commonJs from '${path}';
          export default commonJs.default;
          export const { ${names.join(', ')} } = commonJs;`,
      };
    });
  },
};

rmSync(unfinished, { recursive: true, force: true });
for (const program of programs) {
  const name = program.replace(/\.ts$/, '');
  await build({
    entryPoints: { [basename(name)]: join(source, program) },
    outdir: join(unfinished, dirname(name)),
    // Puts each dynamic import into a file of its own. The files are in the folder of their program, so that paths relative to
    // `import.meta.url` stay valid.
    splitting: true,
    chunkNames: `${basename(name)}-[hash]`,
    bundle: true,
    platform: 'node',
    target: 'node24',
    format: 'esm',
    external,
    banner: { js: banner },
    // ssh2 reads `__dirname`, which ES modules do not have.
    define: { __dirname: 'import.meta.dirname' },
    plugins: [ownAddresses(program), undiciParts, httpWithoutWebSocket, namesOfCommonJs],
    // Saves memory, which holds the text of the program. Names are kept, so that stack traces stay readable.
    minifyWhitespace: true,
    sourcemap: 'linked',
    sourcesContent: false,
    legalComments: 'linked',
    logLevel: 'warning',
  });
}
for (const folder of globSync('**/{templates,static}', { cwd: source })) {
  cpSync(join(source, folder), join(unfinished, folder), {
    recursive: true,
    filter: (path) => !path.endsWith('.ts'),
  });
}
const consoleFolder = join(unfinished, 'console', 'bundle');
mkdirSync(consoleFolder, { recursive: true });
for (const [name, contents] of await buildBundle()) writeFileSync(join(consoleFolder, name), contents);
rmSync(output, { recursive: true, force: true });
renameSync(unfinished, output);
