import assert from 'node:assert/strict';
import { test } from 'node:test';
import { numberPlaceholders } from './portable-sql.ts';

test('placeholders are numbered, outside of literals, names and comments', () => {
  assert.equal(
    numberPlaceholders(`select ?, '?''?', "?" -- ?\n/* ? */ from t where a = ? and b in (?, ?)`),
    `select $1, '?''?', "?" -- ?\n/* ? */ from t where a = $2 and b in ($3, $4)`,
  );
});

test('SQL without placeholders, or with numbered ones, stays as it is', () => {
  for (const sql of ['select 1', `select '?' || $1`]) assert.equal(numberPlaceholders(sql), sql);
});
