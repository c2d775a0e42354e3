import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { loadConfigurationFiles } from '../../src/configuration/load.ts';
import { configurationSchema } from '../../src/configuration/reference.ts';
import { sections } from '../../src/configuration.ts';
import { effectiveDocument, Findings, nodeFromValue } from '../../src/kernel/config/index.ts';
import { readValue } from '../../src/kernel/config/reading/read.ts';
import { sectionOptions } from '../../src/kernel/config/section.ts';
import { runs } from '../support/inputs/thoroughness.ts';

const options = new Map(
  Object.values(sections).flatMap((section) => Object.entries(sectionOptions(section))),
);
const ajv = new Ajv2020({ allowUnionTypes: true });
const validate = ajv.compile(configurationSchema());

/** A document of plain values that sets most options. */
function richDocument(): Record<string, unknown> {
  const file = join(import.meta.dirname, 'fixtures/homeservers/large-postgres.yaml');
  return effectiveDocument(loadConfigurationFiles([file], { environment: {} }).values, sections);
}

/**
 * Whether the reader accepts one option without errors or warnings. Rules between options are not checked.
 */
function readerAccepts(name: string, value: unknown): boolean {
  const findings = new Findings();
  readValue(options.get(name) ?? {}, nodeFromValue(value), { findings, path: name });
  return findings.errors.length === 0 && findings.warnings.length === 0;
}

/** Paths to every value at any depth, as lists of keys. */
function pathsIn(value: unknown, path: readonly string[]): (readonly string[])[] {
  const inner = typeof value === 'object' && value !== null ? Object.entries(value) : [];
  return [path, ...inner.flatMap(([key, member]) => pathsIn(member, [...path, key]))];
}

/** Returns a copy of a value in which `replacement` stands at a path. */
function withReplaced(value: unknown, [key, ...rest]: readonly string[], replacement: unknown): unknown {
  if (key === undefined) return replacement;
  if (Array.isArray(value))
    return value.map((item, index) => (String(index) === key ? withReplaced(item, rest, replacement) : item));
  const members = value as Record<string, unknown>;
  return { ...members, [key]: withReplaced(members[key], rest, replacement) };
}

const replacements = [
  null,
  true,
  false,
  0,
  1,
  -1,
  0.5,
  70_000,
  1e21,
  '',
  'x',
  '5m',
  '10K',
  'infinity',
  '12',
  'a b',
  [],
  ['x'],
  [1],
  {},
  { x: true },
];

describe('the configuration reader and the published JSON schema', () => {
  const document = richDocument();

  it('the reader and the schema accept the effective document of a large configuration', () => {
    assert.ok(validate(document), ajv.errorsText(validate.errors));
    assert.deepEqual(
      Object.entries(document).filter(([name, value]) => !readerAccepts(name, value)),
      [],
    );
  });

  it('the reader and the schema both accept or both reject a value in place of another, except strings, numbers and non-empty lists', () => {
    const paths = Object.entries(document).flatMap(([name, value]) => pathsIn(value, [name]));
    fc.assert(
      fc.property(
        fc.constantFrom(...paths),
        fc.constantFrom(...replacements),
        ([name = '', ...path], replacement) => {
          const value = withReplaced(document[name], path, replacement);
          const schemaAccepts = validate({ [name]: value });
          // The reader also checks ranges and patterns that a schema cannot express, and accepts numbers written as strings.
          const mayDiffer =
            typeof replacement === 'string' ||
            (Array.isArray(replacement) && replacement.length > 0) ||
            typeof replacement === 'number';
          if (schemaAccepts !== readerAccepts(name, value))
            assert.ok(mayDiffer, JSON.stringify([name, ...path, replacement]));
        },
      ),
      { numRuns: runs(5000) },
    );
  });
});
