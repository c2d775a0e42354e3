import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { testEvent, version } from '../authorization/test/test-events.ts';
import { rawNumber } from '../json/raw-number.ts';
import type { JsonObject } from '../json.ts';
import { defaultLevels, namedLevels, parsePowerLevels } from './content.ts';
import { creatorOf, creatorsOf } from './creators.ts';
import { levelReader } from './level-values.ts';
import { PowerLevels } from './power-levels.ts';

const [ann, bob, cat] = ['@ann:a', '@bob:b', '@cat:c'] as const;

const create = (number: number, content: JsonObject = {}) =>
  testEvent(version(number), { type: 'm.room.create', sender: ann, stateKey: '', content });

const levels = (number: number, content: JsonObject) =>
  new PowerLevels(
    create(number, { creator: ann }),
    testEvent(version(number), { type: 'm.room.power_levels', sender: ann, stateKey: '', content }),
  );

describe('levelReader', () => {
  const cases: readonly [value: unknown, floats: number, strings: number, integers: number][] = [
    [50, 50, 50, 50],
    [-1, -1, -1, -1],
    ['50', 50, 50, Number.NaN],
    [' +050 ', 50, 50, Number.NaN],
    ['-7', -7, -7, Number.NaN],
    ['1.5', Number.NaN, Number.NaN, Number.NaN],
    ['', Number.NaN, Number.NaN, Number.NaN],
    [50.57, 50, Number.NaN, Number.NaN],
    [-50.57, -50, Number.NaN, Number.NaN],
    [-0.5, 0, Number.NaN, Number.NaN],
    [rawNumber('5.114698E4'), 51146, Number.NaN, Number.NaN],
    [rawNumber('1e999'), Number.NaN, Number.NaN, Number.NaN],
    ['9'.repeat(400), Number.NaN, Number.NaN, Number.NaN],
    [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
    [true, Number.NaN, Number.NaN, Number.NaN],
    [null, Number.NaN, Number.NaN, Number.NaN],
    [[1], Number.NaN, Number.NaN, Number.NaN],
    [{}, Number.NaN, Number.NaN, Number.NaN],
  ];
  for (const [value, floats, strings, integers] of cases) {
    test(`reads ${JSON.stringify(value).slice(0, 40)}`, () => {
      assert.equal(levelReader('floats and strings')(value as never), floats);
      assert.equal(levelReader('integers and strings')(value as never), strings);
      assert.equal(levelReader('integers')(value as never), integers);
    });
  }
});

describe('PowerLevels.ofUser', () => {
  test('returns the level in users, or users_default', () => {
    const room = levels(11, { users: { [bob]: 7 }, users_default: 3 });
    assert.equal(room.ofUser(bob), 7);
    assert.equal(room.ofUser(cat), 3);
    assert.equal(room.ofUser(ann), 3);
    assert.equal(levels(11, {}).ofUser(bob), 0);
  });

  test('returns 100 for the creator and 0 for others without a power levels event, up to v11', () => {
    for (const number of [1, 10, 11]) {
      const room = new PowerLevels(create(number, { creator: ann }), undefined);
      assert.equal(room.ofUser(ann), 100);
      assert.equal(room.ofUser(bob), 0);
    }
  });

  test('returns infinity for creators since v12, with and without a power levels event', () => {
    const created = create(12, { additional_creators: [bob, 1, null] });
    const event = testEvent(version(12), {
      type: 'm.room.power_levels',
      sender: ann,
      stateKey: '',
      content: { users: { [ann]: 1, [cat]: 5 } },
    });
    for (const room of [new PowerLevels(created, undefined), new PowerLevels(created, event)]) {
      assert.equal(room.ofUser(ann), Number.POSITIVE_INFINITY);
      assert.equal(room.ofUser(bob), Number.POSITIVE_INFINITY);
    }
    assert.equal(new PowerLevels(created, undefined).ofUser(cat), 0);
    assert.equal(new PowerLevels(created, event).ofUser(cat), 5);
  });

  test('returns 0 if neither the create event nor the power levels event is known', () => {
    assert.equal(new PowerLevels(undefined, undefined).ofUser(ann), 0);
  });
});

describe('required levels of PowerLevels', () => {
  test('required levels have their defaults without a power levels event or without the field', () => {
    for (const room of [levels(11, {}), new PowerLevels(create(11), undefined)]) {
      for (const name of namedLevels) assert.equal(room.required(name), defaultLevels[name]);
      assert.equal(room.requiredToSend('m.room.name', true), 50);
      assert.equal(room.requiredToSend('m.room.message', false), 0);
      assert.equal(room.requiredToNotify('room'), 50);
    }
  });

  test('required levels are read from the power levels event', () => {
    const room = levels(11, {
      ban: 1,
      kick: 2,
      invite: 3,
      redact: 4,
      state_default: 5,
      events_default: 6,
      events: { 'm.room.name': 7 },
      notifications: { room: 8 },
    });
    const levelsByName = (['ban', 'kick', 'invite', 'redact'] as const).map((name) => room.required(name));
    assert.deepEqual(levelsByName, [1, 2, 3, 4]);
    assert.equal(room.requiredToSend('m.room.topic', true), 5);
    assert.equal(room.requiredToSend('m.room.message', false), 6);
    assert.equal(room.requiredToSend('m.room.name', true), 7);
    assert.equal(room.requiredToSend('m.room.name', false), 7);
    assert.equal(room.requiredToNotify('room'), 8);
    assert.equal(room.requiredToNotify('other'), 50);
  });

  test('required levels decide what users may do', () => {
    const room = levels(11, { users: { [bob]: 50 }, kick: 51, events: { x: 50, y: 51 } });
    assert.equal(room.reaches(bob, 'ban'), true);
    assert.equal(room.reaches(bob, 'kick'), false);
    assert.equal(room.canSend(bob, 'x', false), true);
    assert.equal(room.canSend(bob, 'y', false), false);
    assert.equal(room.canNotify(bob, 'room'), true);
    assert.equal(room.canNotify(cat, 'room'), false);
  });

  test('required levels with invalid values are reached by no user, and a null level has its default', () => {
    const room = levels(9, { users: { [bob]: 100 }, ban: 'x', events: [], notifications: 1, invite: null });
    assert.equal(room.reaches(bob, 'ban'), false);
    assert.equal(room.canSend(bob, 'm.room.message', false), false);
    assert.equal(room.canNotify(bob, 'room'), false);
    assert.equal(room.required('invite'), 0);
    assert.equal(levels(9, { users: [] }).reaches(bob, 'invite'), false);
  });

  test('required levels are not read from inherited properties of objects', () => {
    const room = levels(11, { users: {}, events: {} });
    assert.equal(room.ofUser('constructor'), 0);
    assert.equal(room.requiredToSend('__proto__', true), 50);
    const withPrototypeKey = levels(11, JSON.parse('{"events": {"__proto__": 9}}'));
    assert.equal(withPrototypeKey.requiredToSend('__proto__', true), 9);
  });
});

describe('creatorOf and creatorsOf', () => {
  test('creatorOf and creatorsOf return content.creator up to v10', () => {
    assert.equal(creatorOf(create(10, { creator: bob })), bob);
    assert.equal(creatorOf(create(10, { creator: 1 })), undefined);
    assert.deepEqual([...creatorsOf(create(10, { creator: bob, additional_creators: [cat] }))], [bob]);
    assert.deepEqual([...creatorsOf(create(10))], []);
  });

  test('creatorOf returns the sender since v11, and creatorsOf also the additional creators since v12', () => {
    assert.equal(creatorOf(create(11, { creator: bob })), ann);
    assert.deepEqual([...creatorsOf(create(11, { additional_creators: [cat] }))], [ann]);
    assert.deepEqual([...creatorsOf(create(12, { additional_creators: [cat] }))], [ann, cat]);
    assert.deepEqual([...creatorsOf(create(12, { additional_creators: cat }))], [ann]);
  });
});

test('parsePowerLevels accepts any content', () => {
  fc.assert(
    fc.property(
      fc.dictionary(fc.constantFrom(...namedLevels, 'users', 'events'), fc.jsonValue()),
      (content) => {
        for (const numbers of ['floats and strings', 'integers and strings', 'integers'] as const) {
          for (const level of parsePowerLevels(content as JsonObject, numbers).named.values()) {
            assert(Number.isInteger(level) || Number.isNaN(level));
          }
        }
      },
    ),
  );
});
