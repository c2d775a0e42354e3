import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { configurationSchema } from '../../src/configuration/reference.ts';

interface SchemaNode {
  readonly description?: string;
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly items?: SchemaNode;
  readonly additionalProperties?: boolean | SchemaNode;
}

/** The options that the interface document describes, extracted from its text and not from the definitions in `src`. */
const documented = JSON.parse(
  readFileSync(join(import.meta.dirname, 'fixtures/documented-options.json'), 'utf8'),
) as { defaults: Record<string, unknown>; required: string[]; withoutDocumentedDefault: string[] };

const schema = configurationSchema() as SchemaNode;
const published = new Map(pathsOf(schema, ''));

function pathsOf(node: SchemaNode, path: string): [string, SchemaNode][] {
  const members = Object.entries(node.properties ?? {}).flatMap(([name, member]): [string, SchemaNode][] => {
    const memberPath = path === '' ? name : `${path}.${name}`;
    return [[memberPath, member], ...pathsOf(member, memberPath)];
  });
  const values =
    typeof node.additionalProperties === 'object' ? pathsOf(node.additionalProperties, `${path}.*`) : [];
  return [...members, ...(node.items ? pathsOf(node.items, `${path}[]`) : []), ...values];
}

describe('the published JSON schema', () => {
  it('contains every documented option, more than 400 of them', () => {
    const paths = [
      ...Object.keys(documented.defaults),
      ...documented.required,
      ...documented.withoutDocumentedDefault,
    ];
    assert.ok(paths.length > 400);
    assert.deepEqual(
      paths.filter((path) => !published.has(path)),
      [],
    );
  });

  it('contains the default of each option in the interface document', () => {
    const defaults = Object.keys(documented.defaults).map((path) => [path, published.get(path)?.default]);
    assert.deepEqual(Object.fromEntries(defaults), documented.defaults);
  });

  it('contains a description and a default for every option', () => {
    for (const [path, node] of published) {
      assert.ok((node.description ?? '').length > 0, path);
      assert.ok('default' in node, path);
    }
  });

  it('compiles in strict mode and accepts its own defaults', () => {
    const ajv = new Ajv2020({ allowUnionTypes: true, strictTypes: true });
    const validate = ajv.compile(schema);
    const required = new Set(documented.required);
    for (const [name, node] of Object.entries(schema.properties ?? {})) {
      if (required.has(name)) continue;
      assert.ok(validate({ [name]: node.default }), `${name}: ${ajv.errorsText(validate.errors)}`);
    }
  });
});
