import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { loadConfigurationSources } from '../../src/configuration/load.ts';

describe('the secret of the authentication service', () => {
  it('reads the secret of the authentication service from a file [option: proto_authentication_service.secret_path]', () => {
    const folder = mkdtempSync(join(tmpdir(), 'hearth-secret-'));
    writeFileSync(join(folder, 'secret'), 'the-shared-secret\n');
    const path = JSON.stringify(join(folder, 'secret'));
    const text = `server_name: test\nmatrix_authentication_service: {enabled: true, secret_path: ${path}}\n`;
    const source = { file: 'homeserver.yaml', text };
    const { values, errors } = loadConfigurationSources([source], { environment: {}, directory: folder });
    assert.deepEqual(errors, []);
    assert.equal(values.accounts.proto_authentication_service.secret, 'the-shared-secret');
    rmSync(folder, { recursive: true });
  });
});
