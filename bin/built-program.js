import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
const program = join(root, 'dist', 'main.js');
const source = join(root, 'src');

/**
 * Returns the path of the built program; `undefined` when it was not built, or when a source file has changed since. An
 * installed server has no source files.
 */
export function builtProgram() {
  if (!existsSync(program)) return undefined;
  if (!existsSync(source)) return program;
  const builtAt = statSync(program).mtimeMs;
  const files = [join(root, 'package.json'), ...filesIn(source)];
  return files.every((file) => statSync(file).mtimeMs <= builtAt) ? program : undefined;
}

function filesIn(folder) {
  const entries = readdirSync(folder, { withFileTypes: true, recursive: true });
  return entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
}
