/** Copies what the compiler leaves out into dist/: templates and static files of pages. */
import { cpSync, globSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
for (const folder of globSync('**/{templates,static}', { cwd: join(root, 'src') })) {
  cpSync(join(root, 'src', folder), join(root, 'dist', folder), {
    recursive: true,
    filter: (path) => !path.endsWith('.ts'),
  });
}
