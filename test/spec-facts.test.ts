import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { SpecSource } from '../scripts/spec-facts/source.ts';

describe('the script that writes the facts about the Matrix APIs', () => {
  const folder = mkdtempSync(join(tmpdir(), 'hearth-spec-facts-'));
  after(() => rmSync(folder, { recursive: true }));

  it('resolves a reference against the file in which it stands', () => {
    mkdirSync(join(folder, 'definitions'));
    writeFileSync(join(folder, 'first.yaml'), 'schemas:\n  $ref: definitions/second.yaml\n');
    writeFileSync(
      join(folder, 'definitions/second.yaml'),
      'user:\n  properties:\n    id:\n      $ref: id.yaml\n',
    );
    writeFileSync(join(folder, 'definitions/id.yaml'), 'type: string\n');
    const source = new SpecSource();
    const root = pathToFileURL(`${folder}/`);
    const user = source.at(new URL('first.yaml#/schemas/user', root));
    assert.deepEqual(source.member(source.member(user, 'properties'), 'id').value, { type: 'string' });
    assert.deepEqual(source.at(new URL('first.yaml#/schemas/user/properties/id/type', root)).value, 'string');
  });
});
