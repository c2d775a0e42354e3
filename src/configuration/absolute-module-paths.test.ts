import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { loadConfigurationSources } from './load.ts';

const load = (text: string) =>
  loadConfigurationSources([{ file: 'homeserver.yaml', text: `server_name: example.org\n${text}` }], {
    environment: {},
    directory: '/etc/hearth',
  });

describe('paths of modules', () => {
  it('paths of modules are relative to the directory of the configuration, unless they are absolute or name a package', () => {
    const { values, errors } = load(`
modules:
  - module: ./modules/a.js
  - module: ../b.ts
  - module: /opt/c.js
  - module: "@example/package"
listeners:
  - port: 8008
    type: http
    additional_resources: {/x: {module: ./d.js, config: {module: ./kept}}}
oidc_providers:
  - idp_id: work
    issuer: https://login.example.org/
    client_id: chat
    client_secret: s
    user_mapping_provider: {module: ./e.ts}
saml2_config: {sp_config: {}, user_mapping_provider: {module: ../f.ts}}
`);
    assert.deepEqual(errors, []);
    assert.deepEqual(
      values.modules.modules.map(({ module }) => module),
      ['/etc/hearth/modules/a.js', '/etc/b.ts', '/opt/c.js', '@example/package'],
    );
    assert.equal(values.sso.oidc_providers[0]?.user_mapping_provider.module, '/etc/hearth/e.ts');
    assert.equal(values.sso.saml2_config?.user_mapping_provider.module, '/etc/f.ts');
    assert.deepEqual(values.http.listeners[0]?.additional_resources, {
      '/x': { module: '/etc/hearth/d.js', config: { module: './kept' } },
    });
  });

  it('paths of additional resources are rejected when they are relative or contain a pattern, a query or an empty segment', () => {
    for (const path of ['relative', '/', '/a/', '/a/:b', '/a/*', '/a?b']) {
      const { errors } = load(
        `listeners: [{port: 8008, type: http, additional_resources: {"${path}": {module: m}}}]`,
      );
      assert.equal(errors.length, 1, path);
      assert.match(JSON.stringify(errors[0]), /a path like \/a\/b/);
    }
  });
});
