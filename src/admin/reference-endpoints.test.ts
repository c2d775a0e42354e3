import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { adminApiPath } from '../../scripts/admin-api.ts';
import { documentedEndpoints, missingEndpoints, ownEndpoints } from './test/documented-fields/index.ts';

describe('endpoints of the admin API', () => {
  const file = join(import.meta.dirname, '..', '..', adminApiPath);
  const { paths } = JSON.parse(readFileSync(file, 'utf8')) as { paths: Record<string, object> };
  const served = Object.entries(paths).flatMap(([path, operations]) =>
    Object.keys(operations).map(
      (method) =>
        `${method.toUpperCase()} ${path.replace('/_synapse/admin/', '').replaceAll(/\{\w+\}/g, '{}')}`,
    ),
  );

  it('has every documented endpoint of the reference server, and no others except those that are listed as endpoints of this server alone', () => {
    const expected = [...Object.keys(documentedEndpoints), ...Object.keys(ownEndpoints)];
    assert.deepEqual(served.sort(), expected.sort());
  });

  it('has none of the endpoints that are listed as missing', () => {
    assert.deepEqual(
      Object.keys(missingEndpoints).filter((endpoint) => served.includes(endpoint)),
      [],
    );
  });
});
