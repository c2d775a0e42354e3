import type { EventFields } from '../../authorization/test/test-events.ts';
import { isJsonObject, type JsonObject } from '../../json.ts';
import type { Random } from './random.ts';

type Action = (random: Random, users: readonly string[], powerLevels: JsonObject) => EventFields;

/** Returns a random event that some user tries to send in a room with these power levels, allowed or not. */
export const randomAction: Action = (random, users, powerLevels) =>
  random.pick(actions)(random, users, powerLevels);

const joinRules = ['public', 'public', 'invite', 'knock', 'restricted', 'knock_restricted'];

const membership =
  (value: string): Action =>
  (random, users) => ({
    type: 'm.room.member',
    sender: random.pick(users),
    stateKey: random.pick(users),
    content: { membership: value },
  });

const ownMembership =
  (value: string): Action =>
  (random, users) => {
    const sender = random.pick(users);
    return { type: 'm.room.member', sender, stateKey: sender, content: { membership: value } };
  };

const restrictedJoin: Action = (random, users) => {
  const sender = random.pick(users);
  const authoriser = random.pick(users);
  return {
    type: 'm.room.member',
    sender,
    stateKey: sender,
    content: { membership: 'join', join_authorised_via_users_server: authoriser },
    signatures: { [authoriser.slice(authoriser.indexOf(':') + 1)]: { 'ed25519:1': 'c2lnbmVk' } },
  };
};

const setJoinRule: Action = (random, users) => ({
  type: 'm.room.join_rules',
  sender: random.pick(users),
  stateKey: '',
  content: { join_rule: random.pick(joinRules) },
});

const setUserLevel: Action = (random, users, powerLevels) => {
  const currentUsers = isJsonObject(powerLevels['users']) ? powerLevels['users'] : {};
  const level = random.pick([0, 25, 50, 75, 100]);
  const content = { ...powerLevels, users: { ...currentUsers, [random.pick(users)]: level } };
  return { type: 'm.room.power_levels', sender: random.pick(users), stateKey: '', content };
};

const setRequiredLevel: Action = (random, users, powerLevels) => {
  const name = random.pick(['ban', 'kick', 'invite', 'state_default', 'users_default', 'events_default']);
  const content = { ...powerLevels, [name]: random.pick([0, 25, 50]) };
  return { type: 'm.room.power_levels', sender: random.pick(users), stateKey: '', content };
};

const setTopic: Action = (random, users) => ({
  type: random.pick(['m.room.topic', 'm.room.name']),
  sender: random.pick(users),
  stateKey: '',
  content: {},
});

const inviteThirdParty: Action = (random, users) => ({
  type: 'm.room.third_party_invite',
  sender: random.pick(users),
  stateKey: random.pick(['token', 'ticket']),
  content: { public_key: 'a2V5' },
});

/** Some actions are listed more than once, so that actions that conflict with other actions are chosen more often. */
const actions: readonly Action[] = [
  ownMembership('join'),
  ownMembership('join'),
  ownMembership('join'),
  ownMembership('leave'),
  ownMembership('knock'),
  membership('invite'),
  membership('invite'),
  membership('ban'),
  membership('ban'),
  membership('leave'),
  restrictedJoin,
  setJoinRule,
  setJoinRule,
  setUserLevel,
  setUserLevel,
  setUserLevel,
  setRequiredLevel,
  setTopic,
  setTopic,
  inviteThirdParty,
];
