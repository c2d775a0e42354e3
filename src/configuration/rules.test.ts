import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { load, type RuleCase, testRules } from './test/rule-case.ts';

const cases: RuleCase[] = [
  {
    rule: 'there is a server name',
    invalid: 'server_name:',
    kind: 'error',
    path: 'server_name',
    message: /must be given/,
    valid: 'server_name: example.org',
  },
  {
    rule: 'the server name is in lowercase',
    invalid: 'server_name: Example.org',
    kind: 'error',
    path: 'server_name',
    message: /found "Example.org"; allowed: a lowercase host name/,
    valid: 'server_name: "example.org:8448"',
  },
  {
    rule: 'database and databases exclude each other',
    invalid: 'database: {name: psycopg2}\ndatabases: {a: {name: psycopg2, data_stores: [main, state]}}',
    kind: 'error',
    path: 'databases',
    message: /cannot be given together with database/,
    valid: 'databases: {a: {name: psycopg2, data_stores: [main, state]}}',
  },
  {
    rule: 'several databases are PostgreSQL databases',
    invalid: 'databases: {a: {name: sqlite3, args: {database: x}, data_stores: [main, state]}}',
    kind: 'error',
    path: 'databases.a.name',
    message: /with PostgreSQL \(psycopg2\) only/,
    valid: 'databases: {a: {name: psycopg2, data_stores: [main]}, b: {name: psycopg2, data_stores: [state]}}',
  },
  {
    rule: 'each data store is in one database',
    invalid: 'databases: {a: {name: psycopg2, data_stores: [main]}}',
    kind: 'error',
    path: 'databases',
    message: /the data store state must be in exactly one database, found in 0/,
    valid: 'databases: {a: {name: psycopg2, data_stores: [state, main]}}',
  },
  {
    rule: 'a SQLite database has a file',
    invalid: 'database: {name: sqlite3}',
    kind: 'error',
    path: 'database.args.database',
    message: /must be given/,
    valid: 'database: {name: sqlite3, args: {database: h.db}}',
  },
  {
    rule: 'tuning caches takes all three numbers',
    invalid: 'caches: {cache_autotuning: {max_cache_memory_usage: 1024M}}',
    kind: 'error',
    path: 'caches.cache_autotuning',
    message: /is incomplete: target_cache_memory_usage and min_cache_ttl must be given too/,
    valid:
      'caches: {cache_autotuning: {max_cache_memory_usage: 1024M, target_cache_memory_usage: 758M, min_cache_ttl: 5m}}',
  },
];

describe('rules between options', () => {
  testRules(cases);

  it('thresholds of garbage collection are accepted with one remark [option: gc_thresholds, gc_min_interval]', () => {
    const [thresholds, intervals] = ['gc_thresholds: [700, 10, 10]', 'gc_min_interval: [1s, 10s, 30s]'];
    for (const document of [thresholds, intervals, `${thresholds}\n${intervals}`]) {
      const { errors, warnings, notices } = load(`${document}\nsuppress_key_server_warning: true`);
      assert.deepEqual([errors, warnings, notices.length], [[], [], 1]);
      assert.match(notices[0]!.message, /has no effect/);
    }
    assert.deepEqual(load('suppress_key_server_warning: true').notices, []);
  });

  it('a rule whose options could not be read is put aside, the others are not', () => {
    const { errors } = load('limit_usage_by_mau: true\nmax_mau_value: many\nurl_preview_enabled: true\n');
    assert.deepEqual(
      errors.map(({ path, at }) => [path, at?.line]),
      [
        ['max_mau_value', 3],
        ['url_preview_enabled', 4],
      ],
    );
  });
});
