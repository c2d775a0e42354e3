import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { foreignOptions } from '../../src/configuration/foreign-options.ts';
import { loadConfigurationFiles } from '../../src/configuration/load.ts';
import { formatProblem, type Problem } from '../../src/kernel/config/index.ts';
import { foreignModuleRemark } from '../../src/modules/index.ts';

const fixtures = join(import.meta.dirname, 'fixtures/homeservers');

/** Loads configuration files among the fixtures. */
const load = (...names: readonly string[]) =>
  loadConfigurationFiles(
    names.map((name) => join(fixtures, name)),
    { environment: {} },
  );

/**
 * The files that are passed with `-c`, by a description of the package, container or deployment tool that writes them.
 * The expected remarks are in a file that is named after the last of these files.
 */
const setUps: Readonly<Record<string, readonly string[]>> = {
  'a Debian package with conf.d': ['debian/homeserver.yaml', 'debian/conf.d'],
  'a container': ['docker.yaml'],
  'a playbook': ['playbook.yaml'],
  'a set-up with workers': ['workers/homeserver.yaml'],
  'a worker': ['workers/homeserver.yaml', 'workers/worker.yaml'],
  'a file from 2018': ['from-2018.yaml'],
  'a Kubernetes chart': ['kubernetes.yaml'],
  'a suite with an authentication service': ['suite.yaml'],
  'a declarative system, as JSON': ['declarative.json.yaml'],
  'a package for households with LDAP': ['household.yaml'],
};

/**
 * Returns all remarks as `hearth config check` prints them, without those about missing features, which change with each
 * release.
 */
function remarksOn(files: readonly string[]) {
  const lines = (kind: string, problems: readonly Problem[]) =>
    problems
      .filter(({ message }) => !message.includes('not in force yet'))
      .map((problem) => `${kind}: ${formatProblem(problem).replaceAll(`${fixtures}/`, '')}`);
  const { errors, warnings, notices } = load(...files);
  return [...lines('error', errors), ...lines('warning', warnings), ...lines('note', notices)];
}

describe('configuration files of packages, containers and deployment tools', () => {
  for (const [name, files] of Object.entries(setUps)) {
    it(`reports line by line what to change in the configuration of ${name}`, () => {
      const expected = readFileSync(join(fixtures, `${files.at(-1)!.replace('/', '-')}.remarks`), 'utf8');
      assert.deepEqual(
        remarksOn(files),
        expected.split('\n').filter((line) => line !== ''),
      );
    });
  }

  it('loads the configurations of packages, containers and deployment tools without errors, except for options of 2018 that other servers reject, too', () => {
    const failing = Object.entries(setUps).filter(([, files]) =>
      remarksOn(files).some((line) => line.startsWith('error: ')),
    );
    assert.deepEqual(
      failing.map(([name]) => name),
      ['a file from 2018'],
    );
  });

  it('shows no secrets in remarks, and names the line of each remark', () => {
    for (const line of Object.values(setUps).flatMap(remarksOn)) {
      assert.doesNotMatch(line, /hunter2/);
      assert.match(line, /^(error|warning|note): \S+\.yaml:\d+:\d+: \S+: /);
    }
  });

  it('reads listeners, databases, secrets in files and other options of packages, containers and deployment tools as intended', () => {
    const valuesOf = (name: keyof typeof setUps) => load(...setUps[name]!).values;
    const debian = valuesOf('a Debian package with conf.d');
    assert.equal(debian.server.server_name, 'chat.example.org');
    assert.equal(debian.database.database?.args.database, '/var/lib/chat/homeserver.db');
    const container = valuesOf('a container');
    assert.deepEqual(
      container.http.listeners.map(({ port, tls }) => [port, tls]),
      [
        [8448, true],
        [8008, false],
      ],
    );
    assert.equal(container.database.database?.args.port, 5432);
    const playbook = valuesOf('a playbook');
    assert.equal(playbook.media.media_storage_providers[0]?.store_synchronous, true);
    assert.equal(playbook.caches.caches.cache_autotuning?.max_cache_memory_usage, 966_367_641);
    const workers = valuesOf('a set-up with workers');
    assert.equal(workers.http.listeners[0]?.path, '/run/main_public.sock');
    assert.equal(workers.database.database?.args.dbname, 'chat');
    const suite = valuesOf('a suite with an authentication service');
    assert.equal(suite.accounts.registration_shared_secret, 'hunter2');
    assert.equal(suite.accounts.proto_authentication_service.endpoint, 'http://mas.example.svc:8080/');
    assert.equal(valuesOf('a declarative system, as JSON').http.listeners[0]?.x_forwarded, true);
    assert.equal(
      valuesOf('a package for households with LDAP').mail.email?.client_base_url,
      'https://app.example.org',
    );
  });

  it('says in each remark on an unknown option or module what to do', () => {
    const remarks = [...foreignOptions.values()];
    for (const remark of remarks)
      assert.match(remark, /\b(delete|see|write|use|set|takes|start it once)\b/i, remark);
    assert.match(
      foreignModuleRemark('some_package.module.ClassName') ?? '',
      /Delete it\. Instead: a module in JavaScript/,
    );
    for (const name of [
      './spam-checker.ts',
      'hearth-spam-checker',
      'my.module',
      '@scope/Name',
      'lodash.merge',
    ]) {
      assert.equal(foreignModuleRemark(name), undefined, name);
    }
  });
});

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
