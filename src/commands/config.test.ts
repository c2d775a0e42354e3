import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { parse } from 'yaml';
import {
  checkConfiguration,
  explainConfiguration,
  printConfigurationReference,
  printConfigurationSchema,
  showConfiguration,
} from './config.ts';

describe('hearth config', () => {
  let directory: string;
  before(() => {
    directory = mkdtempSync(join(tmpdir(), 'hearth-config-'));
  });
  after(() => rmSync(directory, { recursive: true }));

  const write = (text: string, name = 'homeserver.yaml'): string => {
    const file = join(directory, name);
    writeFileSync(file, text);
    return file;
  };
  const run = (command: (context: Parameters<typeof printConfigurationSchema>[0]) => number) => {
    const output = { stdout: '', stderr: '' };
    const stream = (name: keyof typeof output) => ({
      write: (text: string) => {
        output[name] += text;
      },
    });
    const code = command({ stdout: stream('stdout'), stderr: stream('stderr'), environment: {} });
    return { code, ...output };
  };

  const mistakes = `server_name: "Example.org"
listeners:
  - port: 80080
    type: https
    resources:
      - names: [client, fedration]
bcrypt_rounds: twelve
session_lifetime: 5 days
max_upload_size: 50MB
caches:
  global_factor: -1
ip_range_blacklist:
  - 10.0.0.0/8
  - 10.0.0.1/40
url_preview_enabled: true
turn_shared_secret: {hunter2: hunter2}
`;

  it('check reports eleven mistakes, each at its line and column, and exits with code 1', () => {
    const file = write(mistakes);
    const { code, stderr, stdout } = run((context) => checkConfiguration({ files: [file] }, context));
    const errors = stderr.split('\n').filter((line) => line.startsWith('error: '));
    const places = errors.map((line) =>
      line.slice(`error: ${file}:`.length).replace(/: (found|needs) .*/, ''),
    );
    assert.deepEqual(places, [
      '1:14: server_name',
      '3:11: listeners[0].port',
      '4:11: listeners[0].type',
      '6:25: listeners[0].resources[0].names[1]',
      '7:16: bcrypt_rounds',
      '8:19: session_lifetime',
      '9:18: max_upload_size',
      '11:18: caches.global_factor',
      '14:5: ip_range_blacklist[1]',
      '15:1: url_preview_enabled',
      '16:1: turn_shared_secret',
    ]);
    assert.equal(code, 1);
    assert.equal(stdout, '');
    assert.ok(!stderr.includes('hunter2'));
    assert.match(stderr, /The configuration cannot be used: 11 errors, 0 warnings/);
  });

  it('check names the found value and the allowed values', () => {
    const { stderr } = run((context) => checkConfiguration({ files: [write(mistakes)] }, context));
    assert.match(
      stderr,
      /listeners\[0\]\.port: found 80080; allowed: a whole number from 0 to 65535, or null\n/,
    );
    assert.match(stderr, /listeners\[0\]\.type: found "https"; allowed: one of http, manhole, metrics\n/);
    assert.match(stderr, /bcrypt_rounds: found "twelve"; allowed: a whole number from 4 to 31\n/);
    assert.match(stderr, /session_lifetime: found "5 days"; allowed: a duration like 500ms, /);
    assert.match(stderr, /turn_shared_secret: found a mapping; allowed: a text that is not empty, or null\n/);
  });

  it('check accepts a valid configuration and creates no files', () => {
    const file = write(
      'server_name: example.org\nsigning_key_path: absent.key\nregistration_shared_secret_path: absent\n',
    );
    const before = readdirSync(directory);
    const { code, stdout } = run((context) => checkConfiguration({ files: [file], strict: true }, context));
    assert.deepEqual([code, stdout], [0, 'The configuration is valid: 0 errors, 0 warnings.\n']);
    assert.deepEqual(readdirSync(directory), before);
  });

  it('check --strict treats warnings as errors', () => {
    const file = write('server_name: example.org\nbcrypt_round: 12\n');
    const check = (strict: boolean) =>
      run((context) => checkConfiguration({ files: [file], strict }, context));
    assert.equal(check(false).code, 0);
    assert.match(
      check(false).stderr,
      /^warning: .*:2:1: bcrypt_round: is not a known option; did you mean bcrypt_rounds\?$/m,
    );
    assert.equal(check(true).code, 1);
    assert.match(check(true).stderr, /^error: .*:2:1: bcrypt_round: /m);
  });

  it('check reports missing files and invalid YAML', () => {
    const check = (file: string) => run((context) => checkConfiguration({ files: [file] }, context));
    assert.match(
      check(join(directory, 'absent.yaml')).stderr,
      /^error: the configuration file .*absent.yaml does not exist$/m,
    );
    const broken = check(write('server_name: "a\nsecret: hunter2\n', 'broken.yaml'));
    assert.equal(broken.code, 1);
    assert.match(broken.stderr, /^error: .*broken.yaml:\d+:\d+: not valid YAML: /m);
    assert.ok(!broken.stderr.includes('hunter2') && !broken.stderr.includes('must be given'));
  });

  const secrets = `server_name: example.org
registration_shared_secret: hunter2
session_lifetime: 90m
max_upload_size: 2048K
database: {name: psycopg2, args: {password: hunter2, sslpassword: hunter2, sslmode: require}}
oidc_providers: [{idp_id: a, issuer: "https://a.org", client_id: c, client_secret: hunter2}]
modules: [{module: m, config: {anything: hunter2}}]
http_proxy: "http://user:hunter2@proxy:3128"
report_stats_endpoint: "https://user:hunter2@stats.example.org/push"
`;

  it('show prints the effective document with defaults and with masked secrets', () => {
    const { code, stdout } = run((context) => showConfiguration({ files: [write(secrets)] }, context));
    const document = parse(stdout);
    assert.equal(code, 0);
    assert.ok(!stdout.includes('hunter2'));
    assert.equal(document.session_lifetime, '90m');
    assert.equal(document.max_upload_size, '2M');
    assert.equal(document.bcrypt_rounds, 12);
    assert.equal(document.registration_shared_secret, '<secret>');
    assert.equal(document.report_stats_endpoint, 'https://<secret>@stats.example.org/push');
    assert.equal(document.macaroon_secret_key, null);
    assert.equal(document.oidc_providers[0].client_secret, '<secret>');
    assert.equal(document.database.args.sslmode, 'require');
    assert.equal(document.database.args.sslpassword, '<secret>');
    assert.deepEqual(document.modules, [{ module: 'm', config: '<secret>' }]);
  });

  it('show --json prints JSON that loads as the same configuration', () => {
    const show = (file: string) =>
      run((context) => showConfiguration({ files: [file], json: true }, context)).stdout;
    const file = write(
      'server_name: example.org\nui_auth: 5m\nlisteners: [{path: /run/a, type: http, mode: 0660}]\n',
    );
    const shown = show(file);
    assert.equal(show(write(shown, 'shown.yaml')), shown);
  });

  it('show reports errors instead of a part of the document', () => {
    const { code, stdout, stderr } = run((context) =>
      showConfiguration({ files: [write('a: 1\n')] }, context),
    );
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, /server_name: must be given/);
  });

  it('explain prints an option and the options below it', () => {
    const explain = (path: string) => run((context) => explainConfiguration(path, context));
    const { code, stdout } = explain('listeners[0].resources');
    assert.equal(code, 0);
    assert.match(stdout, /^### `listeners\[\]\.resources`\n\nType: /);
    assert.match(stdout, /#### `listeners\[\]\.resources\[\]\.compress`/);
    assert.ok(!stdout.includes('listeners[].port'));
    assert.match(explain('use_presence').stdout, /`use_presence` is another name for `presence.enabled`/);
    assert.match(explain('bcrypt_rounds').stdout, /Default: `12`/);
  });

  it('explain names the built-in login of the debugging console', () => {
    const { stdout } = run((context) => explainConfiguration('manhole_settings', context));
    assert.match(stdout, /built-in name, `hearth`/);
    assert.match(stdout, /built-in one, `manhole`/);
    const port = run((context) => explainConfiguration('manhole', context));
    assert.match(port.stdout, /the login is `hearth` with the password `manhole`/);
  });

  it('explain suggests the nearest name for an unknown option', () => {
    const { code, stdout, stderr } = run((context) => explainConfiguration('bcrypt_ronds', context));
    assert.deepEqual(
      [code, stdout, stderr],
      [1, '', 'There is no option bcrypt_ronds; did you mean bcrypt_rounds?\n'],
    );
  });

  it('schema and docs print the JSON Schema and the reference', () => {
    const schema = run(printConfigurationSchema);
    assert.equal(schema.code, 0);
    assert.equal(JSON.parse(schema.stdout).properties.bcrypt_rounds.default, 12);
    assert.match(run(printConfigurationReference).stdout, /^# Configuration reference\n/);
  });
});
