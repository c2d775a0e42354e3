import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { effectiveOptions } from './effective-options.ts';
import { loadConfigurationSources } from './load.ts';

const text = `server_name: example.org
turn_shared_secret: hunter2
email:
  smtp_host: mail.example.org
listeners:
  - {port: 8008, type: http, resources: [{names: [client]}]}
`;

describe('effectiveOptions', () => {
  const { values, origins } = loadConfigurationSources(
    [
      { file: 'a.yaml', text },
      { file: 'b.yaml', text: 'max_upload_size: 10M\n' },
    ],
    { environment: { SERVER_CACHE_FACTOR: '2' }, directory: '/etc/hearth' },
  );
  const options = new Map(effectiveOptions(values, origins).map((option) => [option.name, option]));

  it('names the file and the line of the options that are given, also inside of mappings', () => {
    const valueAndPlace = (name: string) => {
      const { value, source, file, line } = options.get(name)!;
      return { value, source, file, line };
    };
    assert.deepEqual(valueAndPlace('server_name'), {
      value: 'example.org',
      source: 'file',
      file: 'a.yaml',
      line: 1,
    });
    assert.deepEqual(valueAndPlace('max_upload_size'), {
      value: '10M',
      source: 'file',
      file: 'b.yaml',
      line: 1,
    });
    assert.deepEqual(valueAndPlace('email.smtp_host'), {
      value: 'mail.example.org',
      source: 'file',
      file: 'a.yaml',
      line: 4,
    });
    assert.equal(valueAndPlace('listeners').line, 5);
  });

  it('distinguishes defaults from values that are derived from the environment or from other options', () => {
    assert.deepEqual(options.get('bcrypt_rounds'), { name: 'bcrypt_rounds', value: 12, source: 'default' });
    assert.deepEqual(options.get('caches.global_factor'), {
      name: 'caches.global_factor',
      value: 2,
      source: 'derived',
    });
    assert.equal(options.get('signing_key_path')?.source, 'derived');
  });

  it('reports secrets that are read from files as derived from other options, also inside of mappings', (t) => {
    const directory = mkdtempSync(join(tmpdir(), 'hearth-options-'));
    t.after(() => rmSync(directory, { recursive: true }));
    const file = join(directory, 'secret');
    writeFileSync(file, 'hunter2');
    const { values: read, origins: places } = loadConfigurationSources(
      [
        {
          file: 'a.yaml',
          text: `server_name: example.org
registration_shared_secret_path: ${file}
proto_authentication_service: {enabled: false, secret_path: ${file}}
`,
        },
      ],
      { environment: {}, directory },
    );
    const found = new Map(effectiveOptions(read, places).map((option) => [option.name, option]));
    for (const name of ['registration_shared_secret', 'proto_authentication_service.secret'])
      assert.deepEqual(found.get(name), { name, value: '<secret>', source: 'derived' });
    assert.equal(found.get('registration_shared_secret_path')?.line, 2);
    assert.equal(found.get('form_secret')?.source, 'default');
  });

  it('masks secrets', () => {
    assert.equal(options.get('turn_shared_secret')?.value, '<secret>');
    assert.ok(!JSON.stringify([...options.values()]).includes('hunter2'));
  });
});
