import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, it } from 'node:test';
import { parse } from 'yaml';
import { loadConfigurationFiles } from '../src/configuration/load.ts';
import { systemRandomness } from '../src/kernel/randomness.ts';

const root = join(import.meta.dirname, '..');
const containerFolder = join(root, 'contrib', 'container');
const read = (...path: string[]) => readFileSync(join(root, 'contrib', ...path), 'utf8');

describe('contrib/container', () => {
  const compose = parse(read('container', 'compose.yaml'));
  const containerfile = read('container', 'Containerfile');

  it('contains a valid configuration with the database and the port of compose.yaml', () => {
    const folder = mkdtempSync(join(tmpdir(), 'hearth-container-'));
    try {
      // The folder takes the place of the container's volume.
      const text = read('container', 'homeserver.yaml').replaceAll('/data/', `${folder}/`);
      const file = join(folder, 'homeserver.yaml');
      writeFileSync(file, text);
      const loaded = loadConfigurationFiles([file], {
        environment: {},
        createMissing: { randomness: systemRandomness },
      });
      assert.deepEqual([loaded.errors, loaded.warnings], [[], []]);
      const { http, database } = loaded.values;
      const { postgres, caddy } = compose.services;
      assert.equal(caddy.environment.HEARTH, `hearth:${http.listeners[0]!.port}`);
      assert.ok(containerfile.includes(`EXPOSE ${http.listeners[0]!.port}`));
      const args = database.database?.args as Record<string, unknown>;
      assert.ok(postgres);
      assert.deepEqual(
        [args['host'], args['user'], args['dbname']],
        ['postgres', postgres.environment.POSTGRES_USER, postgres.environment.POSTGRES_DB],
      );
      assert.ok(existsSync(join(folder, 'signing.key')), 'keys are created in the volume');
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('names existing files and programs in compose.yaml and the Containerfile', () => {
    for (const { volumes = [], build } of Object.values<{
      volumes?: string[];
      build?: Record<string, string>;
    }>(compose.services)) {
      for (const volume of volumes) {
        const [from] = volume.split(':') as [string];
        if (from.startsWith('.')) assert.ok(existsSync(resolve(containerFolder, from)), from);
        else assert.ok(from in compose.volumes, from);
      }
      if (build) assert.ok(existsSync(resolve(containerFolder, build['context']!, build['dockerfile']!)));
    }
    for (const [, files] of containerfile.matchAll(/^COPY (?!--from)(.*) \S+$/gm)) {
      for (const file of files!.split(' ')) assert.ok(existsSync(join(root, file)), file);
    }
    assert.match(containerfile, /node scripts\/package\.ts --folder \/opt\/hearth --without-node/);
  });
});

describe('the operating guide', () => {
  it('names existing examples in contrib', () => {
    const guide = readFileSync(join(root, 'docs', 'operating.md'), 'utf8');
    const paths = [...guide.matchAll(/`(contrib\/[\w./-]+)`/g)].map(([, path]) => path!);
    assert.ok(paths.length >= 5);
    for (const path of paths) assert.ok(existsSync(join(root, path)), path);
  });
});
