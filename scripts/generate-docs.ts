import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { adminApiDescription, adminApiPath } from './admin-api.ts';
import { generatedDocs } from './generated-docs.ts';
import { routesOfServer } from './running-routes.ts';

// Writes the generated documentation. Writes nothing, and exits with status 1, when a test title names an option that
// the ledger does not count, or when an option has lost the test that proved it.

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
