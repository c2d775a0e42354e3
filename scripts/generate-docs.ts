import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { generatedDocs } from './generated-docs.ts';

const root = join(import.meta.dirname, '..');
const { files, problems } = generatedDocs(root);
for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exitCode = 1;
else {
  for (const [file, content] of files) {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), content);
  }
}
