import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  diffReload,
  integer,
  list,
  loadConfiguration,
  mapOf,
  nullable,
  number,
  object,
  option,
  reloadedOrigins,
  section,
  string,
} from './index.ts';

const engine = section({
  title: 'Engine',
  options: {
    factors: option(
      object({
        global: option(number(), { description: 'All.', default: 1, reloadable: true }),
        single: option(mapOf(number()), { description: 'Some.', default: {}, reloadable: true }),
        fixed: option(integer(), { description: 'None.', default: 1 }),
      }),
      { description: 'Factors.' },
    ),
    names: option(list(string()), { description: 'Names.', default: [] }),
    box: option(nullable(object({ size: option(integer(), { description: 'Size.', default: 1 }) })), {
      description: 'A box.',
      default: null,
    }),
  },
});
const sections = { engine };

const load = (text: string) => loadConfiguration([{ file: 'a.yaml', text }], sections).values;

test('diffReload applies changes of reloadable options, and keeps the values of options that need a restart', () => {
  const running = load('factors: {global: 1, single: {a: 1}, fixed: 1}\nnames: [a]\n');
  const loaded = load('factors: {global: 2, single: {b: 2}, fixed: 2}\nnames: [b]\nbox: {size: 2}\n');
  const { values, applied, needRestart } = diffReload(running, loaded, sections);
  assert.deepEqual(applied, ['factors.global', 'factors.single']);
  assert.deepEqual(needRestart, ['factors.fixed', 'names', 'box']);
  assert.deepEqual(values.engine, {
    factors: { global: 2, single: { b: 2 }, fixed: 1 },
    names: ['a'],
    box: null,
  });
  assert.deepEqual(running.engine.factors.global, 1);
});

test('reloadedOrigins returns the new file and line of an option, and the old file and line of an option that needs a restart', () => {
  const originsOf = (text: string) => loadConfiguration([{ file: 'a.yaml', text }], sections).origins;
  const running = originsOf('names: [a]\nfactors: {single: {a: 1}}\n');
  const loaded = originsOf('factors:\n  global: 2\nnames: [b]\nbox:\n  size: 2\n');
  const origins = reloadedOrigins(running, loaded, ['names', 'box']);
  assert.deepEqual(
    [...origins].map(([name, at]) => [name, at?.line]),
    [
      ['factors', 1],
      ['factors.global', 2],
      ['names', 1],
    ],
  );
});

test('diffReload applies nothing for an unchanged configuration', () => {
  const running = load('names: [a]\n');
  const { values, applied, needRestart } = diffReload(running, load('names: [a]\n'), sections);
  assert.deepEqual([applied, needRestart], [[], []]);
  assert.deepEqual(values, running);
});
