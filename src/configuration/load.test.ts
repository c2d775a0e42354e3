import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { sections } from '../configuration.ts';
import { cacheFactor } from '../kernel/caches/config.ts';
import { allPaths } from '../kernel/config/option-paths.ts';
import { aliases } from './aliases.ts';
import { foreignOptions } from './foreign-options.ts';
import { loadConfigurationSources } from './load.ts';

function load(text: string, environment: Record<string, string> = {}) {
  const sources = [{ file: 'homeserver.yaml', text: `server_name: example.org\n${text}` }];
  return loadConfigurationSources(sources, { environment, directory: '/etc/hearth' });
}

describe('other names of options', () => {
  it('accepts the spelling matrix_ of options whose names begin with proto_, without a warning', () => {
    const { values, errors, warnings } = load(
      'matrix_authentication_service: {secret: s}\nmatrix_rtc: {transports: []}\n',
    );
    assert.deepEqual([errors, warnings], [[], []]);
    assert.equal(values.accounts.proto_authentication_service.secret, 's');
  });

  it('accepts allow_underscore_prefixed_localpart, the name that the reference server reads, without a warning', () => {
    const { values, errors, warnings } = load('allow_underscore_prefixed_localpart: true\n');
    assert.deepEqual([errors, warnings], [[], []]);
    assert.equal(values.accounts.allow_underscore_prefixed_registration, true);
  });

  it('accepts deprecated names with a warning that contains the current name', () => {
    const { values, errors, warnings } = load(
      'use_presence: untracked\nemail: {notif_from: a, riot_base_url: "https://a.org"}\ncaches: {expiry_time: 5m}\nfederation_ip_range_blacklist: [10.0.0.0/8]\n',
    );
    assert.deepEqual(errors, []);
    assert.deepEqual(
      warnings
        .filter(({ message }) => !message.includes('not in force yet'))
        .map(({ path, message }) => `${path} ${message}`),
      [
        'use_presence is an old name: use presence.enabled',
        'email.riot_base_url is an old name: use email.client_base_url',
        'caches.expiry_time is an old name: use caches.cache_entry_ttl',
        'federation_ip_range_blacklist is an old name: use ip_range_blacklist',
      ],
    );
    assert.equal(values.presence.presence.enabled, 'untracked');
    assert.deepEqual(values.outbound.ip_range_blacklist, ['10.0.0.0/8']);
    assert.equal(values.mail.email?.client_base_url, 'https://a.org');
    assert.equal(values.caches.caches.cache_entry_ttl, 5 * 60_000);
  });

  it('accepts a deprecated name next to other members of the option, but not next to the option itself', () => {
    const beside = load('use_presence: false\npresence: {include_offline_users_on_sync: true}\n');
    assert.deepEqual(beside.values.presence.presence, {
      enabled: false,
      include_offline_users_on_sync: true,
    });
    const twice = load('use_presence: false\npresence: {enabled: true}\n');
    assert.deepEqual(
      twice.errors.map(({ path, at }) => [path, at?.line]),
      [['use_presence', 2]],
    );
  });

  it('reads federation_ip_range_blacklist beside ip_range_blacklist as the list for federation, with a warning', () => {
    const lists = 'ip_range_blacklist: [10.0.0.0/8]\nfederation_ip_range_blacklist: [192.168.0.0/16]\n';
    const { values, errors, warnings } = load(lists);
    assert.deepEqual(errors, []);
    assert.deepEqual(
      warnings.map(({ path, message, at }) => [path, message, at?.line]),
      [
        [
          'federation_ip_range_blacklist',
          'is an old name, given together with ip_range_blacklist: it counts for federation only',
          3,
        ],
      ],
    );
    const { ip_range_blacklist: usual, federation_ip_range_blacklist: federation } = values.outbound;
    assert.deepEqual([usual, federation], [['10.0.0.0/8'], ['192.168.0.0/16']]);
    assert.equal(load('').values.outbound.federation_ip_range_blacklist, null);
    const malformed = load('ip_range_blacklist: []\nfederation_ip_range_blacklist: [x]\n');
    assert.equal(malformed.errors[0]?.path, 'federation_ip_range_blacklist[0]');
  });

  it('reads the deprecated option perspectives as a list of key servers', () => {
    const key = 'Noi6WqcDj0QmPxCNQqgezwTlBKrfqehY1u2FyWP9uYw';
    const { values, errors } = load(
      `perspectives: {servers: {a.org: {verify_keys: {"ed25519:auto": {key: ${key}}}}, b.org: {}}}\n`,
    );
    assert.deepEqual(errors, []);
    assert.deepEqual(values.federationClient.trusted_key_servers, [
      { server_name: 'a.org', verify_keys: { 'ed25519:auto': key }, accept_keys_insecurely: false },
      { server_name: 'b.org', verify_keys: null, accept_keys_insecurely: false },
    ]);
  });

  it('reads the deprecated option oidc_config as one provider if it is enabled', () => {
    const provider = 'issuer: "https://a.org", client_id: c, client_secret: s';
    const ids = (text: string) => load(text).values.sso.oidc_providers.map(({ idp_id }) => idp_id);
    assert.deepEqual(ids(`oidc_config: {enabled: yes, ${provider}}\n`), ['oidc']);
    assert.deepEqual(ids(`oidc_config: {enabled: false, ${provider}}\n`), []);
    assert.deepEqual(ids(`oidc_config: {${provider}}\n`), []);
  });

  it('every alias belongs to an existing option, whose definition names the alias', () => {
    const options = new Map(allPaths(sections).map(({ path, schema }) => [path, schema]));
    for (const { name, within, option, meaningWhenBothAreGiven } of aliases) {
      const path = within === undefined ? option : `${within}.${option}`;
      const from = within === undefined ? name : `${within}.${name}`;
      assert.ok(options.get(path)?.['x-deprecated-names']?.includes(from), `${from} of ${path}`);
      assert.equal(options.has(from), meaningWhenBothAreGiven !== undefined, from);
    }
    for (const name of foreignOptions.keys()) assert.ok(!options.has(name), name);
  });
});

describe('environment variables for cache factors', () => {
  const factors = (text: string, environment: Record<string, string>) => {
    const { values, errors } = load(text, environment);
    assert.deepEqual(errors, []);
    const factor = (name: string) => cacheFactor(values.caches, name);
    return { global: values.caches.caches.global_factor, factor };
  };

  it('override the global cache factor of the file', () => {
    assert.equal(factors('caches: {global_factor: 2}', { SERVER_CACHE_FACTOR: '1.5' }).global, 1.5);
    assert.equal(factors('', { SYNAPSE_CACHE_FACTOR: '3' }).global, 3);
    assert.equal(factors('caches:', { SYNAPSE_CACHE_FACTOR: '3', SERVER_CACHE_FACTOR: '4' }).global, 4);
    assert.equal(factors('caches: {global_factor: 2}', {}).global, 2);
  });

  it('override the factor of one cache, whose name they end with, in uppercase and without special characters', () => {
    const { factor } = factors('caches: {per_cache_factors: {"*stateGroupCache*": 2, users: 3}}', {
      SERVER_CACHE_FACTOR_STATEGROUPCACHE: '5',
      SERVER_CACHE_FACTOR_GET_USERS_IN_ROOM: '7',
    });
    assert.equal(factor('*stateGroupCache*'), 5);
    assert.equal(factor('get_users_in_room'), 7);
    assert.equal(factor('users'), 3);
    assert.equal(factor('others'), 0.5);
  });

  it('leave the other cache options of the file as they are', () => {
    const { values } = load('caches: {expire_caches: false}', { SERVER_CACHE_FACTOR: '1' });
    assert.equal(values.caches.caches.expire_caches, false);
  });

  it('are refused when their values are not numbers of at least 0', () => {
    const { errors } = load('', { SERVER_CACHE_FACTOR: 'much', SERVER_CACHE_FACTOR_X: '-1' });
    assert.deepEqual(
      errors.map(({ path, message }) => `${path}: ${message}`),
      [
        'SERVER_CACHE_FACTOR: found "much" in the environment; allowed: a number that is not negative',
        'SERVER_CACHE_FACTOR_X: found "-1" in the environment; allowed: a number that is not negative',
      ],
    );
  });
});

describe('signing_key_path', () => {
  it('defaults to a file next to the first configuration file', () => {
    assert.equal(load('').values.federationClient.signing_key_path, '/etc/hearth/example.org.signing.key');
    assert.equal(
      load('signing_key_path: null').values.federationClient.signing_key_path,
      '/etc/hearth/example.org.signing.key',
    );
    assert.equal(load('signing_key_path: my.key').values.federationClient.signing_key_path, 'my.key');
  });
});

describe('federation_domain_whitelist', () => {
  const servers = (text: string) => load(text).values.federationClient.federation_domain_whitelist;

  it('allows every server when absent and no server when empty', () => {
    assert.equal(servers(''), null);
    assert.equal(servers('federation_domain_whitelist: null'), null);
    assert.deepEqual(servers('federation_domain_whitelist: []'), []);
    assert.deepEqual(servers('federation_domain_whitelist: [a.org]'), ['a.org']);
  });
});

describe('reloadable options', () => {
  it('reloadable options are cache factors, the log configuration and certificates', () => {
    const reloadable = allPaths(sections).filter(({ schema }) => schema['x-reloadable']);
    assert.deepEqual(
      reloadable.map(({ path }) => path),
      [
        'tls_certificate_path',
        'tls_private_key_path',
        'caches.global_factor',
        'caches.per_cache_factors',
        'log_config',
      ],
    );
  });
});

describe('options in force', () => {
  it('options in force cause no warning that they are not in force yet', () => {
    const text =
      'ui_auth: 5m\nrc_message: {per_second: 1, burst_count: 2}\nlisteners: [{port: 1, type: http}, {port: 2, type: http}]\n' +
      'report_stats: true\nreport_stats_endpoint: https://example.org/\n';
    const warnings = load(text)
      .warnings.map(({ message }) => message)
      .filter((message) => message.includes('not in force yet'));
    assert.deepEqual(warnings, []);
  });
});
