import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { TSchema } from 'typebox';
import { schemaOf } from '../option.ts';
import { Findings } from '../problems.ts';
import { parseYaml } from '../sources/yaml-source.ts';
import * as types from '../types.ts';
import { readValue } from './read.ts';

function read(type: TSchema, text: string, keywords: object = {}) {
  const findings = new Findings();
  const entry = parseYaml('a.yaml', `option: ${text}\n`, findings)?.entries.get('option');
  assert.ok(entry, text);
  const schema = { default: 'unused', ...schemaOf(type), ...keywords };
  const value = readValue(schema, entry.node, { findings, path: 'option', at: entry.at });
  return { value, messages: findings.errors.map(({ message }) => message), warnings: findings.warnings };
}

const accepts = (type: TSchema, cases: Record<string, unknown>) => {
  for (const [text, value] of Object.entries(cases)) {
    const found = read(type, text);
    assert.deepEqual([found.value, found.messages], [value, []], text);
  }
};

const refuses = (type: TSchema, ...texts: string[]) => {
  for (const text of texts) {
    const found = read(type, text);
    assert.equal(found.value, undefined, text);
    assert.equal(found.messages.length, 1, text);
    assert.match(found.messages[0] ?? '', /^found .*; allowed: ./, text);
  }
};

describe('readValue', () => {
  it('reads booleans as true and false, or as unquoted words of YAML 1.1', () => {
    accepts(types.boolean(), { true: true, False: false, yes: true, No: false, ON: true, off: false });
    refuses(types.boolean(), '"yes"', '1', '0', 'y', 'null', '"true"', '[]', '{}', 'maybe');
  });

  it('reads integers, and rejects fractions and numbers beyond the safe integers', () => {
    accepts(types.integer({ minimum: -1 }), { '12': 12, '-1': -1, '0x10': 16, '1e3': 1000 });
    refuses(types.integer({ minimum: -1 }), '1.5', '"12"', '-2', '9007199254740993', '.inf', '.nan', 'true');
  });

  it('reads finite numbers, and rejects infinity and quoted numbers', () => {
    accepts(types.number({ minimum: 0 }), { '0.17': 0.17, '10': 10 });
    refuses(types.number({ minimum: 0 }), '-0.1', '.inf', '.nan', '"0.1"');
  });

  it('reads an unquoted number as text, exactly as written, when the option is a text', () => {
    accepts(types.string(), { abc: 'abc', '"10"': '10', '0070': '0070', '1.10': '1.10', '""': '' });
    refuses(types.string(), 'true', '[a]', '{a: b}', 'null');
    refuses(types.string({ minLength: 1 }), '""');
  });

  it('keeps versions as they are written, and compares them as texts', () => {
    accepts(types.versionOneOf('1', '1.2'), { '1': '1', '1.2': '1.2', '"1.2"': '1.2' });
    refuses(types.versionOneOf('1', '1.2'), '1.0', '1.20', 'x', '[1]');
    accepts(types.numberAsText(), { '1.0': '1.0', '"2b"': '2b' });
  });

  it('reads a scalar as a word or as a boolean, depending on what the option allows', () => {
    accepts(types.oneOf('all', 'off'), { all: 'all', off: 'off', '"off"': 'off' });
    accepts(types.oneOf(true, false, 'untracked'), { yes: true, false: false, untracked: 'untracked' });
    refuses(types.oneOf('all', 'off'), 'All', 'none', 'true', 'false');
  });

  it('reads durations, sizes, ports and permissions', () => {
    accepts(types.duration(), {
      '0': 0,
      '30s': 30_000,
      '1500': 1500,
      '"1500"': 1500,
      infinity: Infinity,
      '.inf': Infinity,
    });
    refuses(types.duration(), '1.5', '-1', 'soon', 'true', '-1s');
    accepts(types.size(), { '10M': 10_485_760, '5': 5 });
    refuses(types.size(), '10MB', '-1', '1.5');
    accepts(types.integerOrDigits({ maximum: 65535 }), { '587': 587, '"587"': 587 });
    refuses(types.integerOrDigits({ maximum: 65535 }), '65536', '"smtp"', '-1');
    accepts(types.fileMode(), { '660': 0o660, '0660': 0o660, '0o660': 0o660, '"660"': 0o660 });
    refuses(types.fileMode(), '668', '66', 'rw');
  });

  it('accepts only valid patterns and address ranges', () => {
    accepts(types.regularExpression(), { '"^a+$"': '^a+$' });
    refuses(types.regularExpression(), '"(a"', '"(?=a)"', 'null', 'true');
    accepts(types.globOrRegularExpression(), { '"*.a.org"': '*.a.org', '"^a+$"': '^a+$', '"(a"': '(a' });
    refuses(types.globOrRegularExpression(), '"^(a"');
    accepts(types.glob(), { '"*"': '*' });
    refuses(types.glob(), '"a\\nb"');
    accepts(types.cidr(), { '10.0.0.0/8': '10.0.0.0/8', '"FC00::/7"': 'fc00::/7', '"::1"': '::1/128' });
    refuses(types.cidr(), 'localhost', '10.0.0.0/33');
  });

  it('accepts only valid identifiers and URLs', () => {
    accepts(types.serverName(), {
      'a.org': 'a.org',
      '"a.org:8448"': 'a.org:8448',
      '"[::1]:8448"': '[::1]:8448',
      '1.2.3.4': '1.2.3.4',
    });
    refuses(types.serverName(), 'A.org', '"https://a.org"', '"a b"', '"a.org:"', '""', '"a_b.org"');
    accepts(types.userId(), { '"@a:b.org"': '@a:b.org' });
    refuses(types.userId(), 'a', '"@a"', '"@a b:c"');
    accepts(types.localpart(), { 'a.b_c=d-e/f+g': 'a.b_c=d-e/f+g' });
    refuses(types.localpart(), '"@a:b"', 'A', '""');
    accepts(types.roomIdOrAlias(), { '"#a:b.org"': '#a:b.org', '"!a:b.org"': '!a:b.org', '"!a"': '!a' });
    refuses(types.roomIdOrAlias(), 'a', '"#a"');
    accepts(types.roomId(), { '"!a:b.org"': '!a:b.org' });
    refuses(types.roomId(), '"#a:b.org"');
    accepts(types.mxcUri(), { '"mxc://a/b"': 'mxc://a/b' });
    refuses(types.mxcUri(), '"https://a/b"', '"mxc://a"');
    accepts(types.httpUrl(), { '"https://a.org"': 'https://a.org', '"http://a:1/b?c"': 'http://a:1/b?c' });
    refuses(types.httpUrl(), 'a.org', '"ftp://a.org"', '"https:// a"');
  });

  it('reads null for nullable options only', () => {
    accepts(types.nullable(types.duration()), { null: null, '~': null, '': null, '1s': 1000 });
    accepts(types.nullable(types.oneOf('a')), { null: null, a: 'a' });
    accepts(types.nullable(types.list(types.string())), { null: null, '[]': [] });
    refuses(types.duration(), 'null', '~');
    assert.match(read(types.nullable(types.integer()), 'x').messages[0] ?? '', /a whole number, or null/);
  });

  it('uses the default for a name without a value, with a warning for scalars', () => {
    const found = read(types.integer(), '', { default: 7 });
    assert.deepEqual([found.value, found.messages, found.warnings.length], [7, [], 1]);
    const list = read(types.list(types.string()), '', { default: ['a'] });
    assert.deepEqual([list.value, list.messages, list.warnings], [['a'], [], []]);
  });

  it('checks the number of entries of a list', () => {
    const three = types.list(types.duration(), { minItems: 3, maxItems: 3 });
    accepts(three, { '[1s, 2s, 3s]': [1000, 2000, 3000] });
    assert.match(
      read(three, '[1s]').messages[0] ?? '',
      /found 1 entries; allowed: a list with exactly 3 entries/,
    );
    refuses(three, '1s', '{a: b}');
  });

  it('checks the values of mappings with free names, and the names if a pattern is given', () => {
    const factors = types.mapOf(types.number(), { pattern: '^[a-z]+$', allowed: 'lowercase letters' });
    accepts(factors, { '{a: 1, b: 2}': { a: 1, b: 2 }, '{}': {} });
    assert.deepEqual(read(factors, '{A: 1}').messages, ['found "A"; allowed: lowercase letters']);
    assert.deepEqual(read(factors, '{a: x}').messages, ['found "x"; allowed: a number']);
  });

  it('passes free-form content on unchanged', () => {
    const content = '{a: [1, "2", null], b: {c: true}, constructor: x}';
    accepts(types.freeObject(), { [content]: { a: [1, '2', null], b: { c: true }, constructor: 'x' } });
    refuses(types.freeObject(), '[]', 'text');
  });

  it('reads a value of one of several types by its shape: scalar, list or mapping', () => {
    const either = types.eitherOf(types.string(), types.list(types.string(), { minItems: 2, maxItems: 2 }));
    accepts(either, { 'm.room.topic': 'm.room.topic', '[m.a, key]': ['m.a', 'key'] });
    refuses(either, '{a: b}', 'true');
  });
});

describe('messages of readValue', () => {
  it('quotes the found value in its messages up to a maximum length, but no secrets and nothing that may contain them', () => {
    const message = (type: TSchema, text: string, keywords: object = {}) =>
      read(type, text, keywords).messages[0] ?? '';
    assert.match(message(types.integer(), 'hunter2'), /found "hunter2"/);
    assert.match(message(types.integer(), 'hunter2', { 'x-secret': true }), /found a text;/);
    assert.match(message(types.integer(), '1234.5', { 'x-secret': true }), /found a number;/);
    assert.match(message(types.object({ a: types.string() }), 'hunter2'), /found a text;/);
    assert.match(message(types.list(types.object({})), 'hunter2'), /found a text;/);
    assert.ok(message(types.integer(), 'x'.repeat(500)).length < 120);
  });
});
