import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Folder with the sources of the pages. The pages run in browsers. */
const sources = fileURLToPath(new URL('./browser', import.meta.url));

/**
 * Bundles the pages of the console with their libraries.
 * @returns the contents of the files by name; `index.html` is the page
 * @throws when esbuild is not installed
 */
export async function buildBundle(): Promise<ReadonlyMap<string, Uint8Array>> {
  const { build } = await import('esbuild');
  const { outputFiles } = await build({
    entryPoints: [
      { in: join(sources, 'main.tsx'), out: 'console' },
      { in: join(sources, 'style/console.css'), out: 'console' },
      { in: join(sources, 'index.html'), out: 'index' },
    ],
    outdir: '/',
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2024',
    tsconfig: join(sources, 'tsconfig.json'),
    loader: { '.html': 'copy', '.svg': 'dataurl' },
    legalComments: 'none',
    write: false,
    logLevel: 'warning',
  });
  return new Map(outputFiles.map(({ path, contents }) => [path.replace(/^.*[/\\]/, ''), contents]));
}
