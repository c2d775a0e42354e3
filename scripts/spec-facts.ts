/**
 * Writes the data files about the Matrix APIs that tests use, from a checkout of the specification:
 *
 *     node scripts/spec-facts.ts SOURCE_DIR
 *
 * `test/support/matrix-spec/facts/README.md` describes the files. Fails when one of the specification's examples does not
 * fit the schema that was written for it.
 */
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { apis } from '../test/support/matrix-spec/facts.ts';
import { validateResponse } from '../test/support/matrix-spec/matrix-spec.ts';
import { responseExamples } from './spec-facts/examples.ts';
import { findOperations, operationFacts } from './spec-facts/operations.ts';
import { printJson } from './spec-facts/print.ts';
import { SchemaCollector } from './spec-facts/schemas.ts';
import { SpecSource } from './spec-facts/source.ts';

const [directory] = process.argv.slice(2);
if (directory === undefined) {
  console.error('usage: node scripts/spec-facts.ts SOURCE_DIR');
  process.exit(2);
}
const root = pathToFileURL(`${resolve(directory)}/`);
const source = new SpecSource();
const schemas = new SchemaCollector(source, root);
const operations = apis.map((api) => ({ api, operations: findOperations(source, root, api) }));

for (const { api, operations: ofApi } of operations) {
  const facts = ofApi.map((operation) => [operation.operationId, operationFacts(source, schemas, operation)]);
  writeFacts(api, Object.fromEntries(facts));
  console.log(`${api}: ${ofApi.length} operations`);
}
writeFacts('schemas', schemas.collected());

const examples = operations.flatMap(({ operations: ofApi }) =>
  ofApi.flatMap((operation) =>
    responseExamples(source, operation).map((example) => ({ operation, ...example })),
  ),
);
const problems = examples.flatMap(({ operation, status, body }) => {
  const path = operation.path.replaceAll(/\{[^}]*\}/g, 'x');
  const verdict = validateResponse(operation.method, path, status, body);
  return verdict.problems.map((problem) => `${operation.operationId} ${status}: ${problem}`);
});
console.log(`${examples.length} examples of responses, ${problems.length} problems`);
for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exitCode = 1;

function writeFacts(name: string, facts: object): void {
  const file = join(import.meta.dirname, `../test/support/matrix-spec/facts/${name}.json`);
  writeFileSync(file, `${printJson(facts)}\n`);
}
