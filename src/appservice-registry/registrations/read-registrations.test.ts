import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import type { Logger } from '../../kernel/observability/index.ts';
import { reportChangedRegistrations } from './changed-registrations.ts';
import { readRegistrations } from './read-registrations.ts';

const folder = mkdtempSync(join(tmpdir(), 'hearth-registrations-'));
after(() => rmSync(folder, { recursive: true }));

const write = (name: string, text: string): string => {
  const file = join(folder, name);
  writeFileSync(file, text);
  return file;
};

const registration = (id: string, more = '') => `id: ${id}
url: null
as_token: as-${id}
hs_token: hs-${id}
sender_localpart: ${id}
namespaces:
  users: [{ regex: '@${id}_.*', exclusive: true }]
${more}`;

const messages = (problems: readonly { readonly message: string }[]) =>
  problems.map(({ message }) => message.replaceAll(`${folder}/`, ''));

describe('registration files of application services', () => {
  it('reads a registration file with defaults, and with the name of receive_ephemeral in MSC2409', () => {
    const file = write('irc.yaml', registration('irc', 'de.sorunome.msc2409.push_ephemeral: true\n'));
    const { registrations, errors } = readRegistrations([file]);
    assert.deepEqual(errors, []);
    assert.deepEqual(registrations, [
      {
        id: 'irc',
        url: undefined,
        asToken: 'as-irc',
        hsToken: 'hs-irc',
        senderLocalpart: 'irc',
        users: [{ regex: '@irc_.*', exclusive: true }],
        aliases: [],
        rooms: [],
        rateLimited: true,
        receivesEphemeral: true,
        receivesDeviceChanges: false,
        managesDevices: false,
        protocols: [],
      },
    ]);
  });

  it('accepts an empty url, and a sender_localpart with upper case as mautrix bridges generate it', () => {
    const text = registration('puppets').replace('url: null', "url: ''");
    const file = write(
      'puppets.yaml',
      text.replace('sender_localpart: puppets', 'sender_localpart: x7Kq0Zb'),
    );
    const { registrations, errors } = readRegistrations([file]);
    assert.deepEqual(errors, []);
    assert.deepEqual(
      registrations.map(({ url, senderLocalpart }) => [url, senderLocalpart]),
      [[undefined, 'x7Kq0Zb']],
    );
  });

  it('reports every mistake of a registration file with file, line, path and the found value, and quotes no tokens', () => {
    const file = write(
      'broken.yaml',
      `id: irc
url: localhost
as_token: [secret]
sender_localpart: 'irc bot'
namespaces:
  users:
    - regex: '@irc_(?=x)'
      exclusive: maybe
`,
    );
    const { registrations, errors } = readRegistrations([file, join(folder, 'absent.yaml')]);
    assert.deepEqual(registrations, []);
    const lines = messages(errors);
    assert.match(lines[0]!, /^broken\.yaml:2:6: url: .*localhost/);
    assert.ok(lines.some((line) => /^broken\.yaml:3:\d+: as_token: /.test(line)));
    assert.ok(lines.some((line) => /^broken\.yaml:4:19: sender_localpart: .*irc bot/.test(line)));
    assert.ok(lines.some((line) => /^broken\.yaml:7:14: namespaces\.users\[0\]\.regex: /.test(line)));
    assert.ok(lines.some((line) => /^broken\.yaml:8:18: namespaces\.users\[0\]\.exclusive: /.test(line)));
    assert.ok(lines.some((line) => /hs_token/.test(line)));
    assert.ok(lines.some((line) => /absent\.yaml does not exist/.test(line)));
    assert.doesNotMatch(lines.join(), /secret/);
  });

  it('rejects services with an equal id, as_token or sender_localpart, and warns of equal exclusive patterns', () => {
    const one = write('one.yaml', registration('one'));
    const two = write('two.yaml', registration('one').replace('as_token: as-one', 'as_token: as-two'));
    const { errors, warnings } = readRegistrations([one, two]);
    assert.deepEqual(messages(errors), [
      'two.yaml: id: is also the id of the service in one.yaml',
      'two.yaml: sender_localpart: is also the sender_localpart of the service in one.yaml',
    ]);
    assert.deepEqual(messages(warnings), [
      "two.yaml: namespaces.users[0].regex: the service 'one' in one.yaml has the same exclusive pattern, so neither can create such users",
    ]);
  });

  it('logs the services whose registrations have changed in the files, and nothing while the files contain mistakes', () => {
    const [kept, changed] = [
      write('kept.yaml', registration('kept')),
      write('changed.yaml', registration('a')),
    ];
    const { registrations } = readRegistrations([kept, changed]);
    const logged: unknown[] = [];
    const log = { warn: ({ services }: object & { services: string[] }) => logged.push(services) };
    const report = () => reportChangedRegistrations(log as unknown as Logger, [kept, changed], registrations);
    report();
    write('changed.yaml', 'id: [');
    report();
    assert.deepEqual(logged, []);
    write('changed.yaml', registration('b'));
    report();
    write('changed.yaml', registration('a', 'rate_limited: false\n'));
    report();
    assert.deepEqual(logged, [['a', 'b'], ['a']]);
  });
});
