import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { adminApiDescription, adminApiPath } from './admin-api.ts';
import { generatedDocs } from './generated-docs.ts';
import { routesOfServer } from './running-routes.ts';

// Writes the generated documentation. Writes nothing, and exits with status 1, when the titles of tests name an option that
// does not exist, or no longer name an option that they are to prove.

const root = join(import.meta.dirname, '..');
const { files, problems } = generatedDocs(root);
for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exitCode = 1;
else {
  const adminApi = adminApiDescription(await routesOfServer());
  for (const [file, content] of [...files, [adminApiPath, adminApi] as const]) {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), content);
  }
}
