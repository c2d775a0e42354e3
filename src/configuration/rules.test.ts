import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { load, type RuleCase, testRules } from './test/rule-case.ts';

const cases: RuleCase[] = [
  {
    rule: 'requires a server name',
    invalid: 'server_name:',
    kind: 'error',
    path: 'server_name',
    message: /must be given/,
    valid: 'server_name: example.org',
  },
  {
    rule: 'refuses a server name with uppercase letters',
    invalid: 'server_name: Example.org',
    kind: 'error',
    path: 'server_name',
    message: /found "Example.org"; allowed: a lowercase host name/,
    valid: 'server_name: "example.org:8448"',
  },
  {
    rule: 'refuses database together with databases',
    invalid: 'database: {name: psycopg2}\ndatabases: {a: {name: psycopg2, data_stores: [main, state]}}',
    kind: 'error',
    path: 'databases',
    message: /cannot be given together with database/,
    valid: 'databases: {a: {name: psycopg2, data_stores: [main, state]}}',
  },
  {
    rule: 'refuses SQLite for several databases',
    invalid: 'databases: {a: {name: sqlite3, args: {database: x}, data_stores: [main, state]}}',
    kind: 'error',
    path: 'databases.a.name',
    message: /with PostgreSQL \(psycopg2\) only/,
    valid: 'databases: {a: {name: psycopg2, data_stores: [main]}, b: {name: psycopg2, data_stores: [state]}}',
  },
  {
    rule: 'requires each data store to be in one database',
    invalid: 'databases: {a: {name: psycopg2, data_stores: [main]}}',
    kind: 'error',
    path: 'databases',
    message: /the data store state must be in exactly one database, found in 0/,
    valid: 'databases: {a: {name: psycopg2, data_stores: [state, main]}}',
  },
  {
    rule: 'requires the file of a SQLite database',
    invalid: 'database: {name: sqlite3}',
    kind: 'error',
    path: 'database.args.database',
    message: /must be given/,
    valid: 'database: {name: sqlite3, args: {database: h.db}}',
  },
  {
    rule: 'requires all three members of cache_autotuning',
    invalid: 'caches: {cache_autotuning: {max_cache_memory_usage: 1024M}}',
    kind: 'error',
    path: 'caches.cache_autotuning',
    message: /is incomplete: target_cache_memory_usage and min_cache_ttl must be given too/,
    valid:
      'caches: {cache_autotuning: {max_cache_memory_usage: 1024M, target_cache_memory_usage: 758M, min_cache_ttl: 5m}}',
  },
];

describe('configuration rules', () => {
  testRules(cases);

  it('accepts thresholds of garbage collection with one notice [option: gc_thresholds, gc_min_interval]', () => {
    const thresholds = 'gc_thresholds: [700, 10, 10]';
    const intervals = 'gc_min_interval: [1s, 10s, 30s]';
    for (const document of [thresholds, intervals, `${thresholds}\n${intervals}`]) {
      const { errors, warnings, notices } = load(`${document}\nsuppress_key_server_warning: true`);
      assert.deepEqual([errors, warnings, notices.length], [[], [], 1]);
      assert.match(notices[0]!.message, /has no effect/);
    }
    assert.deepEqual(load('suppress_key_server_warning: true').notices, []);
  });

  it('skips a rule whose options could not be read, and no other', () => {
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
