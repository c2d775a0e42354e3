import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { loadConfigurationFiles } from '../../src/configuration/load.ts';

function load(name: string) {
  const file = join(import.meta.dirname, 'fixtures/homeservers', name);
  return loadConfigurationFiles([file], { environment: {} });
}

describe('configuration files of other homeservers', () => {
  it('loads a small file without errors or warnings', () => {
    const { values, errors, warnings } = load('small-sqlite.yaml');
    assert.deepEqual([errors, warnings], [[], []]);
    assert.equal(values.server.server_name, 'chat.example.org');
    assert.equal(values.database.database?.args.database, '/var/lib/chat/homeserver.db');
    assert.deepEqual(values.http.listeners[0]?.resources, [
      { names: ['client', 'federation'], compress: false },
    ]);
  });

  it('loads a large file with one warning for each option that is unknown, deprecated or without effect', () => {
    const loaded = load('large-postgres.yaml');
    assert.deepEqual(loaded.errors, []);
    const warnings = loaded.warnings.filter(({ message }) => !message.includes('not in force yet'));
    assert.deepEqual(warnings.map(({ path }) => path).toSorted(), [
      'account_validity',
      'database.allow_unsafe_locale',
      'email.riot_base_url',
      'enable_group_creation',
      'enable_registratoin_captcha',
      'experimental_features',
      'federation_ip_range_blacklist',
      'federation_sender_instances',
      'instance_map',
      'listeners[2].bind_address',
      'oidc_config',
      'redis',
      'use_presence',
    ]);
    const misspelt = warnings.find(({ path }) => path === 'enable_registratoin_captcha');
    assert.match(misspelt?.message ?? '', /did you mean enable_registration_captcha\?/);
    for (const { message, at } of warnings) {
      assert.ok((at?.line ?? 0) > 0);
      assert.ok(!message.includes('hunter2'));
    }
  });

  it('reads the values of a large file', () => {
    const { values } = load('large-postgres.yaml');
    assert.deepEqual(values.outbound.ip_range_blacklist, ['127.0.0.0/8', '10.0.0.0/8', '::1/128']);
    assert.deepEqual(values.http.listeners[2]?.bind_addresses, ['127.0.0.1']);
    assert.equal(values.http.listeners[3]?.x_forwarded, true);
    assert.equal(values.presence.presence.enabled, true);
    assert.equal(values.mail.email?.client_base_url, 'https://app.example.org');
    assert.equal(values.mail.email?.smtp_port, 587);
    assert.equal(values.accounts.turn_user_lifetime, 86_400_000);
    assert.equal(values.accounts.ui_auth.session_timeout, 15_000);
    assert.equal(values.caches.event_cache_size, 51_200);
    assert.deepEqual(values.rateLimits.rc_login.account, { per_second: 0.18, burst_count: 5 });
    assert.equal(values.rooms.encryption_enabled_by_default_for_room_type, 'off');
    assert.equal(values.federationClient.federation_client_minimum_tls_version, '1.2');
    assert.equal(values.federationClient.federation_domain_whitelist, null);
    assert.deepEqual(
      values.sso.oidc_providers.map(({ idp_id, issuer }) => [idp_id, issuer]),
      [['oidc', 'https://accounts.example.org/']],
    );
    assert.deepEqual(values.accounts.proto_rtc.transports, [
      { type: 'livekit', livekit_service_url: 'https://rtc.example.org/livekit/jwt' },
    ]);
    assert.equal(values.database.database?.args['sslmode'], 'require');
    assert.equal(values.sso.saml2_config, null);
  });
});
