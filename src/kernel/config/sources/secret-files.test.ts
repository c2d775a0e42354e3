import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { readSigningKeys } from '../../../protocol/crypto/index.ts';
import { systemRandomness } from '../../randomness.ts';
import { list, loadConfiguration, nullable, object, option, section, string } from '../index.ts';

const text = (notes: object) =>
  option(nullable(string({ minLength: 1 })), { description: 'Text.', default: null, ...notes });

const vault = section({
  title: 'Vault',
  options: {
    secret: text({ secret: true }),
    secret_path: text({ fileFor: 'secret', created: 'secret' }),
    key_path: text({ created: 'signing-key' }),
    doors: option(list(object({ code: text({ secret: true }), code_path: text({ fileFor: 'code' }) })), {
      description: 'Doors.',
      default: [],
    }),
  },
});

describe('loadConfiguration with options that name the file of a value', () => {
  let directory: string;
  before(() => {
    directory = mkdtempSync(join(tmpdir(), 'hearth-config-'));
  });
  after(() => rmSync(directory, { recursive: true }));

  const file = (name: string, content?: string): string => {
    const path = join(directory, name);
    if (content !== undefined) writeFileSync(path, content);
    return path;
  };
  const load = (document: object, create = false) =>
    loadConfiguration(
      [{ file: 'a.yaml', text: JSON.stringify(document) }],
      { vault },
      create ? { createMissing: { randomness: systemRandomness } } : {},
    );

  it('takes the value from the file without surrounding white space', () => {
    for (const content of ['hunter2', 'hunter2\n', 'hunter2\r\n', ' hunter2 \n\n']) {
      const { values, errors } = load({ secret_path: file('padded', content) });
      assert.deepEqual([values.vault.secret, errors], ['hunter2', []], JSON.stringify(content));
    }
  });

  it('takes the values of options inside list items from their files', () => {
    const { values } = load({ doors: [{ code: 'a' }, { code_path: file('code', 'b\n') }] });
    assert.deepEqual(
      values.vault.doors.map(({ code }) => code),
      ['a', 'b'],
    );
  });

  it('reports an error when an option is given directly and by a file', () => {
    const { errors } = load({ secret: 'a', secret_path: file('both', 'b') });
    assert.deepEqual(
      errors.map(({ path, message }) => [path, message]),
      [['secret_path', 'cannot be given together with secret']],
    );
  });

  it('reports an error when the file of an option is missing, empty, or not a file', () => {
    mkdirSync(file('folder'));
    const cases: [string, RegExp][] = [
      [file('absent'), /cannot be read: it does not exist/],
      [file('empty', '\n'), /is empty/],
      [file('folder'), /cannot be read: it is a directory/],
      [join(file('plain', 'x'), 'below'), /cannot be read: a part of its path is not a directory/],
    ];
    for (const [path, message] of cases) {
      const [error] = load({ doors: [{ code_path: path }] }).errors;
      assert.equal(error?.path, 'doors[0].code_path');
      assert.match(error?.message ?? '', message);
      assert.equal(error?.at?.line, 1);
    }
  });

  it('creates a missing secret file at start, readable by its owner only, and uses it again at the next start', () => {
    const path = file('made');
    const first = load({ secret_path: path }, true);
    assert.deepEqual(first.errors, []);
    assert.match(first.values.vault.secret ?? '', /^[A-Za-z0-9]{64}$/);
    assert.equal(statSync(path).mode & 0o777, 0o600);
    assert.equal(load({ secret_path: path }, true).values.vault.secret, first.values.vault.secret);
  });

  it('creates a missing file with a signing key for options that need one', () => {
    const path = file('server.key');
    assert.deepEqual(load({ key_path: path }, true).errors, []);
    const content = readFileSync(path, 'utf8');
    assert.match(content, /^ed25519 a_[A-Za-z]{4} [A-Za-z0-9+/]{43}\n$/);
    assert.equal(readSigningKeys(content).length, 1);
    assert.equal(statSync(path).mode & 0o777, 0o600);
  });

  it('creates no file when a configuration is only checked or has errors', () => {
    const path = file('never');
    const check = load({ secret_path: path });
    assert.deepEqual([check.errors, check.values.vault.secret], [[], null]);
    load({ secret_path: path, doors: 'wrong' }, true);
    assert.throws(() => statSync(path), /ENOENT/);
  });

  it('reports an error when a file cannot be created', () => {
    const [error] = load({ key_path: join(directory, 'nowhere', 'server.key') }, true).errors;
    assert.equal(error?.path, 'key_path');
    assert.match(error?.message ?? '', /cannot create the file .*: it does not exist/);
  });
});
