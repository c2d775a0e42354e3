import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { loadConfigurationSources } from '../../src/configuration/load.ts';

describe('the client secret of an OpenID Connect provider', () => {
  it('the client secret of an OpenID Connect provider is read from a file [option: oidc_providers[].client_secret_path]', () => {
    const folder = mkdtempSync(join(tmpdir(), 'hearth-secret-'));
    writeFileSync(join(folder, 'secret'), 'the secret\n');
    const path = JSON.stringify(join(folder, 'secret'));
    const provider = `{idp_id: a, issuer: "https://idp.example/", client_id: b, client_secret_path: ${path}}`;
    const source = { file: 'homeserver.yaml', text: `server_name: test\noidc_providers: [${provider}]\n` };
    const { values, errors } = loadConfigurationSources([source], { environment: {}, directory: folder });
    assert.deepEqual(errors, []);
    assert.equal(values.sso.oidc_providers[0]?.client_secret, 'the secret');
    rmSync(folder, { recursive: true });
  });
});
