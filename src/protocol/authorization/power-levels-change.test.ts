import { describe } from 'node:test';
import type { JsonObject } from '../json.ts';
import { namedLevels } from '../power-levels/index.ts';
import { creator, levels, member, moderator, testRules, versions } from './test/rule-cases.ts';

const allVersions = versions(1);

/**
 * A change of power levels from `before` to `after`, sent by `sender`. Both contents
 * also get the levels that let the moderator send the change.
 */
function change(before: JsonObject, after: JsonObject, sender = moderator) {
  const levelsForModerator = { state_default: 50, users: { [moderator]: 50 } };
  const merged = (content: JsonObject): JsonObject => ({
    ...levelsForModerator,
    ...content,
    users: { ...levelsForModerator.users, ...((content['users'] as JsonObject | undefined) ?? {}) },
  });
  return { event: levels(merged(after), sender), state: [levels(merged(before))] };
}

/** The named levels that tests can change alone: the other two also decide whether the sender may send the change. */
const independentNames = namedLevels.filter((name) => name !== 'state_default' && name !== 'users_default');

describe('authorize, rule 10.6: named levels', () => {
  testRules([
    ...independentNames.flatMap((name) => [
      {
        rule: '10.6.1',
        description: `changing ${name} that is above the level of the sender`,
        versions: allVersions,
        allowed: false,
        ...change({ [name]: 51 }, { [name]: 0 }),
      },
      {
        rule: '10.6.1',
        description: `removing ${name} that is above the level of the sender`,
        versions: allVersions,
        allowed: false,
        ...change({ [name]: 51 }, {}),
      },
      {
        rule: '10.6.2',
        description: `raising ${name} above the level of the sender`,
        versions: allVersions,
        allowed: false,
        ...change({ [name]: 0 }, { [name]: 51 }),
      },
      {
        rule: '10.6.2',
        description: `adding ${name} above the level of the sender`,
        versions: allVersions,
        allowed: false,
        ...change({}, { [name]: 51 }),
      },
      {
        rule: '10.6',
        description: `raising ${name} up to the level of the sender`,
        versions: allVersions,
        allowed: true,
        ...change({ [name]: 0 }, { [name]: 50 }),
      },
      {
        rule: '10.6',
        description: `lowering ${name} from the level of the sender`,
        versions: allVersions,
        allowed: true,
        ...change({ [name]: 50 }, { [name]: 0 }),
      },
      {
        rule: '10.6',
        description: `an unchanged ${name} above the level of the sender`,
        versions: allVersions,
        allowed: true,
        ...change({ [name]: 51 }, { [name]: 51 }),
      },
      {
        rule: '10.6',
        description: `an unchanged ${name} that is written as a string, up to v9`,
        versions: versions(1, 9),
        allowed: true,
        ...change({ [name]: 51 }, { [name]: ' 051 ' }),
      },
      {
        rule: '10.6',
        description: `an unreadable ${name} up to v9`,
        versions: versions(1, 9),
        allowed: false,
        ...change({ [name]: 'x' }, { [name]: 'x' }),
      },
    ]),
    {
      rule: '10.6',
      description: 'setting a level whose default is above the level of the sender',
      versions: allVersions,
      allowed: false,
      event: levels({ state_default: 0, users: { [moderator]: 40 }, ban: 40 }, moderator),
      state: [levels({ state_default: 0, users: { [moderator]: 40 } })],
    },
    {
      rule: '10.6',
      description: 'any change by a creator since v12',
      versions: versions(12),
      allowed: true,
      ...change({ ban: 1000 }, { ban: 2000, users: { [moderator]: 3000 } }, creator),
    },
  ]);
});

/** The lists of levels that follow the same rules, and the room version since which each is checked. */
const lists = [
  ['events', 1],
  ['notifications', 6],
] as const;

describe('authorize, rules 10.7 and 10.8: levels in events and notifications', () => {
  testRules(
    lists.flatMap(([name, since]) => [
      {
        rule: '10.7.1',
        description: `changing a level in ${name} that is above the level of the sender`,
        versions: versions(since),
        allowed: false,
        ...change({ [name]: { x: 51 } }, { [name]: { x: 1 } }),
      },
      {
        rule: '10.7.1',
        description: `removing a level in ${name} that is above the level of the sender`,
        versions: versions(since),
        allowed: false,
        ...change({ [name]: { x: 51 } }, {}),
      },
      {
        rule: '10.8.1',
        description: `raising a level in ${name} above the level of the sender`,
        versions: versions(since),
        allowed: false,
        ...change({ [name]: { x: 1 } }, { [name]: { x: 51 } }),
      },
      {
        rule: '10.8.1',
        description: `adding a level in ${name} above the level of the sender`,
        versions: versions(since),
        allowed: false,
        ...change({}, { [name]: { x: 51 } }),
      },
      {
        rule: '10.8',
        description: `changing levels in ${name} up to the level of the sender`,
        versions: allVersions,
        allowed: true,
        ...change({ [name]: { x: 1, y: 50 } }, { [name]: { x: 50, z: 50 } }),
      },
      {
        rule: '10.8',
        description: `an unchanged level in ${name} above the level of the sender`,
        versions: allVersions,
        allowed: true,
        ...change({ [name]: { x: 51 } }, { [name]: { x: 51 } }),
      },
      {
        rule: '10.7',
        description: `${name} that is not an object, up to v9`,
        versions: versions(since, 9),
        allowed: false,
        ...change({ [name]: [] }, {}),
      },
    ]),
  );
  testRules([
    {
      rule: '10.8',
      description: 'changing a level in notifications above the level of the sender up to v5',
      versions: versions(1, 5),
      allowed: true,
      ...change({ notifications: { x: 51 } }, { notifications: { x: 52 } }),
    },
    {
      rule: '10.8',
      description: 'adding a level above the level of the sender for the event type __proto__',
      versions: allVersions,
      allowed: false,
      ...change({}, { events: JSON.parse('{"__proto__": 51}') }),
    },
  ]);
});

describe('authorize, rules 10.9 and 10.10: levels of users', () => {
  const user = (level: number) => ({ users: { [member]: level } });
  testRules([
    {
      rule: '10.10',
      description: 'raising a user to the level of the sender',
      versions: allVersions,
      allowed: true,
      ...change({}, user(50)),
    },
    {
      rule: '10.9',
      description: 'lowering a user below the level of the sender',
      versions: allVersions,
      allowed: true,
      ...change(user(49), user(-1)),
    },
    {
      rule: '10.9',
      description: 'removing a user below the level of the sender',
      versions: allVersions,
      allowed: true,
      ...change(user(49), {}),
    },
    {
      rule: '10.9.1',
      description: 'lowering a user with the level of the sender',
      versions: allVersions,
      allowed: false,
      ...change(user(50), user(1)),
    },
    {
      rule: '10.9.1',
      description: 'removing a user with the level of the sender',
      versions: allVersions,
      allowed: false,
      ...change(user(50), {}),
    },
    {
      rule: '10.9.1',
      description: 'lowering a user above the level of the sender',
      versions: allVersions,
      allowed: false,
      ...change(user(51), user(1)),
    },
    {
      rule: '10.9',
      description: 'an unchanged user above the level of the sender',
      versions: allVersions,
      allowed: true,
      ...change(user(51), user(51)),
    },
    {
      rule: '10.10.1',
      description: 'raising a user above the level of the sender',
      versions: allVersions,
      allowed: false,
      ...change(user(1), user(51)),
    },
    {
      rule: '10.10.1',
      description: 'adding a user above the level of the sender',
      versions: allVersions,
      allowed: false,
      ...change({}, user(51)),
    },
    {
      rule: '10.9',
      description: 'lowering oneself',
      versions: allVersions,
      allowed: true,
      ...change({}, { users: { [moderator]: 1 } }),
    },
    {
      rule: '10.10.1',
      description: 'raising oneself',
      versions: allVersions,
      allowed: false,
      ...change({}, { users: { [moderator]: 51 } }),
    },
    {
      rule: '10.9',
      description: 'removing oneself',
      versions: allVersions,
      allowed: true,
      event: levels({ state_default: 50 }, moderator),
      state: [levels({ state_default: 50, users: { [moderator]: 50 } })],
    },
  ]);
});
