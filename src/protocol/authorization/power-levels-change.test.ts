import { describe } from 'node:test';
import type { JsonObject } from '../json.ts';
import { namedLevels } from '../power-levels/index.ts';
import { creator, levels, member, moderator, testRules, versions } from './test/rule-cases.ts';

const all = versions(1);

/** A change of the moderator, from `before` to `after`, both without the levels that let them make it. */
function change(before: JsonObject, after: JsonObject, of = moderator) {
  const own = { state_default: 50, users: { [moderator]: 50 } };
  const merged = (content: JsonObject): JsonObject => ({
    ...own,
    ...content,
    users: { ...own.users, ...((content['users'] as JsonObject | undefined) ?? {}) },
  });
  return { event: levels(merged(after), of), state: [levels(merged(before))] };
}

const changeableNames = namedLevels.filter((name) => name !== 'state_default' && name !== 'users_default');

describe('rule 10.6, the named levels', () => {
  testRules([
    ...changeableNames.flatMap((name) => [
      {
        rule: '10.6.1',
        description: `${name} that is above the sender`,
        versions: all,
        allowed: false,
        ...change({ [name]: 51 }, { [name]: 0 }),
      },
      {
        rule: '10.6.1',
        description: `${name} that is above the sender, removed`,
        versions: all,
        allowed: false,
        ...change({ [name]: 51 }, {}),
      },
      {
        rule: '10.6.2',
        description: `${name} to above the sender`,
        versions: all,
        allowed: false,
        ...change({ [name]: 0 }, { [name]: 51 }),
      },
      {
        rule: '10.6.2',
        description: `${name} added above the sender`,
        versions: all,
        allowed: false,
        ...change({}, { [name]: 51 }),
      },
      {
        rule: '10.6',
        description: `${name} raised within the level of the sender`,
        versions: all,
        allowed: true,
        ...change({ [name]: 0 }, { [name]: 50 }),
      },
      {
        rule: '10.6',
        description: `${name} lowered from the level of the sender`,
        versions: all,
        allowed: true,
        ...change({ [name]: 50 }, { [name]: 0 }),
      },
      {
        rule: '10.6',
        description: `${name} above the sender, not changed`,
        versions: all,
        allowed: true,
        ...change({ [name]: 51 }, { [name]: 51 }),
      },
      {
        rule: '10.6',
        description: `${name} written as a string, not changed`,
        versions: versions(1, 9),
        allowed: true,
        ...change({ [name]: 51 }, { [name]: ' 051 ' }),
      },
      {
        rule: '10.6',
        description: `${name} that can not be understood`,
        versions: versions(1, 9),
        allowed: false,
        ...change({ [name]: 'x' }, { [name]: 'x' }),
      },
    ]),
    {
      rule: '10.6',
      description: 'below the default of what was not there',
      versions: all,
      allowed: false,
      event: levels({ state_default: 0, users: { [moderator]: 40 }, ban: 40 }, moderator),
      state: [levels({ state_default: 0, users: { [moderator]: 40 } })],
    },
    {
      rule: '10.6',
      description: 'anything, by a creator since v12',
      versions: versions(12),
      allowed: true,
      ...change({ ban: 1000 }, { ban: 2000, users: { [moderator]: 3000 } }, creator),
    },
  ]);
});

/** The lists of levels that are checked alike, and since when they are. */
const lists = [
  ['events', 1],
  ['notifications', 6],
] as const;

describe('rules 10.7 and 10.8, events and notifications', () => {
  testRules(
    lists.flatMap(([name, since]) => [
      {
        rule: '10.7.1',
        description: `${name}: above the sender, changed`,
        versions: versions(since),
        allowed: false,
        ...change({ [name]: { x: 51 } }, { [name]: { x: 1 } }),
      },
      {
        rule: '10.7.1',
        description: `${name}: above the sender, removed`,
        versions: versions(since),
        allowed: false,
        ...change({ [name]: { x: 51 } }, {}),
      },
      {
        rule: '10.8.1',
        description: `${name}: changed to above the sender`,
        versions: versions(since),
        allowed: false,
        ...change({ [name]: { x: 1 } }, { [name]: { x: 51 } }),
      },
      {
        rule: '10.8.1',
        description: `${name}: added above the sender`,
        versions: versions(since),
        allowed: false,
        ...change({}, { [name]: { x: 51 } }),
      },
      {
        rule: '10.8',
        description: `${name}: within the level of the sender`,
        versions: all,
        allowed: true,
        ...change({ [name]: { x: 1, y: 50 } }, { [name]: { x: 50, z: 50 } }),
      },
      {
        rule: '10.8',
        description: `${name}: above the sender, not changed`,
        versions: all,
        allowed: true,
        ...change({ [name]: { x: 51 } }, { [name]: { x: 51 } }),
      },
      {
        rule: '10.7',
        description: `${name}: no list of levels`,
        versions: versions(since, 9),
        allowed: false,
        ...change({ [name]: [] }, {}),
      },
    ]),
  );
  testRules([
    {
      rule: '10.8',
      description: 'notifications above the sender up to v5',
      versions: versions(1, 5),
      allowed: true,
      ...change({ notifications: { x: 51 } }, { notifications: { x: 52 } }),
    },
    {
      rule: '10.8',
      description: 'names that objects have anyway',
      versions: all,
      allowed: false,
      ...change({}, { events: JSON.parse('{"__proto__": 51}') }),
    },
  ]);
});

describe('rules 10.9 and 10.10, users', () => {
  const user = (level: number) => ({ users: { [member]: level } });
  testRules([
    {
      rule: '10.10',
      description: 'raised to the sender',
      versions: all,
      allowed: true,
      ...change({}, user(50)),
    },
    { rule: '10.9', description: 'lowered', versions: all, allowed: true, ...change(user(49), user(-1)) },
    { rule: '10.9', description: 'removed', versions: all, allowed: true, ...change(user(49), {}) },
    {
      rule: '10.9.1',
      description: 'of equal level, lowered',
      versions: all,
      allowed: false,
      ...change(user(50), user(1)),
    },
    {
      rule: '10.9.1',
      description: 'of equal level, removed',
      versions: all,
      allowed: false,
      ...change(user(50), {}),
    },
    {
      rule: '10.9.1',
      description: 'above the sender, lowered',
      versions: all,
      allowed: false,
      ...change(user(51), user(1)),
    },
    {
      rule: '10.9',
      description: 'above the sender, not changed',
      versions: all,
      allowed: true,
      ...change(user(51), user(51)),
    },
    {
      rule: '10.10.1',
      description: 'raised above the sender',
      versions: all,
      allowed: false,
      ...change(user(1), user(51)),
    },
    {
      rule: '10.10.1',
      description: 'added above the sender',
      versions: all,
      allowed: false,
      ...change({}, user(51)),
    },
    {
      rule: '10.9',
      description: 'the sender, lowered',
      versions: all,
      allowed: true,
      ...change({}, { users: { [moderator]: 1 } }),
    },
    {
      rule: '10.10.1',
      description: 'the sender, raised',
      versions: all,
      allowed: false,
      ...change({}, { users: { [moderator]: 51 } }),
    },
    {
      rule: '10.9',
      description: 'the sender, removed',
      versions: all,
      allowed: true,
      event: levels({ state_default: 50 }, moderator),
      state: [levels({ state_default: 50, users: { [moderator]: 50 } })],
    },
  ]);
});
