import { describe } from 'node:test';
import { parseJsonObject } from '../json/index.ts';
import type { JsonObject } from '../json.ts';
import { namedLevels } from '../power-levels/index.ts';
import {
  create,
  creator,
  levels,
  member,
  moderator,
  powerLevelsKey,
  testRules,
  versions,
} from './test/rule-cases.ts';

const allVersions = versions(1);

/** The first power levels of a room, sent by the creator. */
const first = (content: JsonObject) => ({ event: levels(content), without: [powerLevelsKey] });

/** Values that no room version reads as integers. */
const nonIntegers = [null, true, [], {}, '', 'ten', '1.5', '0x10', '1e2', '1 2', '--1', '\u0661'];
/** Strings that room versions up to v9 read as integers. */
const integerStrings = ['50', ' 50 ', '\t0050\n', '+50', '-50'];

describe('authorize, rules 10.1 to 10.4: the content of power levels', () => {
  testRules([
    {
      rule: '10.5',
      description: 'first power levels with empty content',
      versions: allVersions,
      allowed: true,
      ...first({}),
    },
    {
      rule: '10.5',
      description: 'first power levels with every kind of level',
      versions: allVersions,
      allowed: true,
      ...first({
        ...Object.fromEntries(namedLevels.map((name, index) => [name, index - 3])),
        events: { 'm.room.name': 1 },
        notifications: { room: 2 },
        users: { [moderator]: -1 },
      }),
    },
    ...namedLevels.flatMap((name) => [
      ...[...integerStrings, ...nonIntegers].map((value) => ({
        rule: '10.1',
        description: `${name} ${JSON.stringify(value)} since v10`,
        versions: versions(10),
        allowed: false,
        ...first({ [name]: value }),
      })),
      ...[...integerStrings, ...nonIntegers].map((value) => ({
        rule: '10.1',
        description: `${name} ${JSON.stringify(value)} up to v9`,
        versions: versions(1, 9),
        allowed: true,
        ...first({ [name]: value }),
      })),
    ]),
    ...['events', 'notifications'].flatMap((name) =>
      [...nonIntegers.filter((value) => JSON.stringify(value) !== '{}'), { x: '1' }, { x: null }].map(
        (value) => ({
          rule: '10.2',
          description: `${name} ${JSON.stringify(value)} since v10`,
          versions: versions(10),
          allowed: false,
          ...first({ [name]: value }),
        }),
      ),
    ),
    ...[null, true, [], 'x', 1].map((users) => ({
      rule: '10.3',
      description: `users ${JSON.stringify(users)}`,
      versions: allVersions,
      allowed: false,
      ...first({ users }),
    })),
    ...nonIntegers.map((level) => ({
      rule: '10.3',
      description: `the level ${JSON.stringify(level)} of a user`,
      versions: allVersions,
      allowed: false,
      ...first({ users: { [moderator]: level } }),
    })),
    ...integerStrings.flatMap((level) => [
      {
        rule: '10.3',
        description: `the level ${JSON.stringify(level)} of a user up to v9`,
        versions: versions(1, 9),
        allowed: true,
        ...first({ users: { [moderator]: level } }),
      },
      {
        rule: '10.3',
        description: `the level ${JSON.stringify(level)} of a user since v10`,
        versions: versions(10),
        allowed: false,
        ...first({ users: { [moderator]: level } }),
      },
    ]),
    ...['moderator:a.example', '@moderator', 'x', '', '@a:not a server'].map((user) => ({
      rule: '10.3',
      description: `a level of the user id ${JSON.stringify(user)}`,
      versions: allVersions,
      allowed: false,
      ...first({ users: { [user]: 1 } }),
    })),
    ...[creator, member].map((user) => ({
      rule: '10.4',
      description: `a level of the creator ${user} since v12`,
      versions: versions(12),
      allowed: false,
      event: levels({ users: { [user]: 1 } }),
      state: [create({ additional_creators: [member] })],
      without: [powerLevelsKey],
    })),
    {
      rule: '10.4',
      description: 'a level of the creator up to v11',
      versions: versions(1, 11),
      allowed: true,
      ...first({ users: { [creator]: 100 } }),
    },
  ]);
});

/** Content that gives the moderator a level in this notation. */
const asWritten = (level: string) =>
  parseJsonObject(`{"users": {"${moderator}": ${level}}}`, { numbers: 'as written' });

describe('authorize, rule 10.3: floats in power levels', () => {
  testRules([
    ...[50.57, -0.5].map((level) => ({
      rule: '10.3',
      description: `the level ${level} of a user up to v5`,
      versions: versions(1, 5),
      allowed: true,
      ...first({ users: { [moderator]: level } }),
    })),
    ...['50.57', '5.114698E4', '1.0', '9007199254740993'].flatMap((level) => [
      {
        rule: '10.3',
        description: `the level ${level} of a user, kept as written, up to v5`,
        versions: versions(1, 5),
        allowed: true,
        ...first(asWritten(level)),
      },
      {
        rule: '10.3',
        description: `the level ${level} of a user, kept as written, since v6`,
        versions: versions(6),
        allowed: false,
        ...first(asWritten(level)),
      },
    ]),
    {
      rule: '10.3',
      description: 'a level beyond the range of doubles',
      versions: allVersions,
      allowed: false,
      ...first(asWritten('1e999')),
    },
  ]);
});
