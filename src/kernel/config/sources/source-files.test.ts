import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Findings } from '../problems.ts';
import { readSourceFiles } from './source-files.ts';

describe('readSourceFiles', () => {
  let directory: string;
  before(() => {
    directory = mkdtempSync(join(tmpdir(), 'hearth-config-'));
    mkdirSync(join(directory, 'conf.d'));
    for (const name of ['10-b.yaml', '2-a.yml', '20-c.yaml', '.hidden.yaml', 'notes.txt', 'd.yaml.bak']) {
      writeFileSync(join(directory, 'conf.d', name), `name: ${name}\n`);
    }
    writeFileSync(join(directory, 'main.yaml'), 'name: main\n');
    writeFileSync(join(directory, 'latin1.yaml'), Buffer.from([0x61, 0x3a, 0x20, 0xe9]));
  });
  after(() => rmSync(directory, { recursive: true }));

  const read = (...names: string[]) => {
    const findings = new Findings();
    const paths = names.map((name) => join(directory, name));
    const { sources, directory: first } = readSourceFiles(paths, findings);
    return { names: sources.map(({ file }) => basename(file)), first, errors: findings.errors };
  };

  it('reads files in the given order, and the YAML files of a directory in the order of their names', () => {
    const { names, errors } = read('main.yaml', 'conf.d');
    assert.deepEqual(names, ['main.yaml', '10-b.yaml', '2-a.yml', '20-c.yaml']);
    assert.deepEqual(errors, []);
  });

  it('returns the directory that contains the first path, or the first path itself if it is a directory', () => {
    assert.equal(read('main.yaml', 'conf.d').first, directory);
    assert.equal(read('conf.d', 'main.yaml').first, join(directory, 'conf.d'));
  });

  it('reports all files that are missing or are not UTF-8 text', () => {
    const messages = read('absent.yaml', 'latin1.yaml').errors.map(({ message }) => message);
    assert.equal(messages.length, 2);
    assert.match(messages[0] ?? '', /absent.yaml does not exist/);
    assert.match(messages[1] ?? '', /latin1.yaml is not UTF-8 text/);
  });
});
