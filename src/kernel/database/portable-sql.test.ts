import assert from 'node:assert/strict';
import { test } from 'node:test';
import { numberPlaceholders } from './portable-sql.ts';

test('numberPlaceholders numbers placeholders outside of literals, identifiers and comments', () => {
  assert.equal(
    numberPlaceholders(`select ?, '?''?', "?" -- ?\n/* ? */ from t where a = ? and b in (?, ?)`),
    `select $1, '?''?', "?" -- ?\n/* ? */ from t where a = $2 and b in ($3, $4)`,
  );
});

test('numberPlaceholders does not change SQL that has no placeholders or only numbered placeholders', () => {
  for (const sql of ['select 1', `select '?' || $1`]) assert.equal(numberPlaceholders(sql), sql);
});
