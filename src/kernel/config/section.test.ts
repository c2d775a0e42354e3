import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sectionDefaults } from '../../../test/support/inputs/section-defaults.ts';
import {
  boolean,
  duration,
  integer,
  list,
  loadConfiguration,
  nullable,
  object,
  oneOf,
  option,
  type SectionType,
  section,
  serverName,
  size,
} from './index.ts';

const kitchen = section({
  title: 'Kitchen',
  options: {
    server_name: option(serverName(), { description: 'The name.', required: true }),
    bake_time: option(duration(), { description: 'How long.', default: '30m' }),
    oven: option(
      object({
        volume: option(nullable(size()), { description: 'Room.', default: '60K' }),
        mode: option(oneOf('grill', 'off'), { description: 'Heat.', default: 'off' }),
      }),
      { description: 'The oven.' },
    ),
    trays: option(
      list(
        object({
          level: option(integer({ minimum: 1 }), { description: 'Where.', required: true }),
          greased: option(boolean(), { description: 'How.', default: false }),
        }),
      ),
      { description: 'The trays.', default: [] },
    ),
  },
});
type KitchenConfig = SectionType<typeof kitchen>;

test('loadConfiguration returns typed values in milliseconds and bytes, and the defaults of options that are not set', () => {
  const { values, errors, warnings } = loadConfiguration(
    [{ file: 'a.yaml', text: 'server_name: example.org\noven: {mode: grill}\ntrays: [{level: 2}]\n' }],
    { kitchen },
  );
  assert.deepEqual([errors, warnings], [[], []]);
  const config: KitchenConfig = values.kitchen;
  assert.deepEqual(config, {
    server_name: 'example.org',
    bake_time: 1_800_000,
    oven: { volume: 61_440, mode: 'grill' },
    trays: [{ level: 2, greased: false }],
  });
});

test('loadConfiguration replaces a whole top-level option when a later source sets it', () => {
  const { values } = loadConfiguration(
    [
      { file: 'a.yaml', text: 'server_name: example.org\noven: {mode: grill}\nbake_time: 1h\n' },
      { file: 'b.yaml', text: 'oven: {volume: 1K}\n' },
    ],
    { kitchen },
  );
  assert.deepEqual(values.kitchen.oven, { volume: 1024, mode: 'off' });
  assert.equal(values.kitchen.bake_time, 3_600_000);
});

test('loadConfiguration reports all errors and warnings at once, each with its line and column', () => {
  const text = [
    'server_name: Example.org',
    'bake_time: soon',
    'oven:',
    '  mode: boil',
    '  volumen: 3',
    'trays:',
    '  - greased: yes',
    '  - level: 0',
    'bake_tiem: 1h',
  ].join('\n');
  const { errors, warnings } = loadConfiguration([{ file: 'a.yaml', text }], { kitchen });
  const places = (problems: typeof errors) => problems.map(({ path, at }) => [path, at?.line, at?.column]);
  assert.deepEqual(places(errors), [
    ['server_name', 1, 14],
    ['bake_time', 2, 12],
    ['oven.mode', 4, 9],
    ['trays[0].level', 7, 5],
    ['trays[1].level', 8, 12],
  ]);
  assert.deepEqual(places(warnings), [
    ['oven.volumen', 5, 3],
    ['bake_tiem', 9, 1],
  ]);
  assert.match(warnings[1]?.message ?? '', /did you mean bake_time/);
});

test('sectionDefaults returns the given values and the defaults of a section, and throws for an invalid or missing value', () => {
  const config = sectionDefaults(kitchen, { server_name: 'a', bake_time: 5, oven: { volume: null } });
  assert.equal(config.bake_time, 5);
  assert.deepEqual(config.oven, { volume: null, mode: 'off' });
  assert.throws(() => sectionDefaults(kitchen, { bake_time: -5 }), /bake_time: found -5/);
  assert.throws(() => sectionDefaults(kitchen, {}), /server_name: must be given/);
});
