import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { authorize } from './authorize.ts';
import {
  create,
  createKey,
  creator,
  levels,
  member,
  membership,
  message,
  moderator,
  powerLevelsKey,
  stranger,
  testRules,
  versions,
} from './test/rule-cases.ts';
import { lookupIn, testEvent } from './test/test-events.ts';

const allVersions = versions(1);
const topic = (sender: string, stateKey = '') => ({ type: 'm.room.topic', sender, stateKey });

describe('authorize, rule 4: m.federate', () => {
  const closed = { creator, 'm.federate': false };
  testRules([
    {
      rule: '4',
      description: 'a sender on another server in a room that is not federated',
      versions: allVersions,
      allowed: false,
      event: message(member),
      state: [create(closed)],
    },
    {
      rule: '4',
      description: "a sender on the creator's server in a room that is not federated",
      versions: allVersions,
      allowed: true,
      event: message(moderator),
      state: [create(closed)],
    },
    ...[true, null, 'false', 0].map((federate) => ({
      rule: '4',
      description: `a sender on another server if m.federate is ${JSON.stringify(federate)}`,
      versions: allVersions,
      allowed: true,
      event: message(member),
      state: [create({ creator, 'm.federate': federate })],
    })),
    {
      rule: '4',
      description: 'an event in a room without create event',
      versions: allVersions,
      allowed: false,
      event: message(creator),
      without: [createKey],
    },
  ]);
});

describe('authorize, v1 rule 4: m.room.aliases', () => {
  const aliases = (sender: string, stateKey?: string) => ({ type: 'm.room.aliases', sender, stateKey });
  testRules([
    {
      rule: 'v1 4.1',
      description: 'm.room.aliases without state key up to v5',
      versions: versions(1, 5),
      allowed: false,
      event: aliases(member),
    },
    {
      rule: 'v1 4.1',
      description: 'm.room.aliases without state key, by a sender without server, up to v5',
      versions: versions(1, 5),
      allowed: false,
      event: aliases('nobody'),
    },
    {
      rule: 'v1 4.2',
      description: 'm.room.aliases for another server up to v5',
      versions: versions(1, 5),
      allowed: false,
      event: aliases(creator, 'b.example'),
    },
    {
      rule: 'v1 4.3',
      description: "m.room.aliases for the sender's server from outside of the room up to v5",
      versions: versions(1, 5),
      allowed: true,
      event: aliases(stranger, 'b.example'),
    },
    {
      rule: 'v1 4',
      description: 'm.room.aliases from outside of the room since v6',
      versions: versions(6),
      allowed: false,
      event: aliases(stranger, 'b.example'),
    },
    {
      rule: 'v1 4',
      description: 'm.room.aliases by a moderator, like other state, since v6',
      versions: versions(6),
      allowed: true,
      event: aliases(moderator, 'b.example'),
    },
  ]);
});

describe('authorize, rule 6: the sender must be joined', () => {
  testRules([
    {
      rule: '6',
      description: 'a message by a member',
      versions: allVersions,
      allowed: true,
      event: message(member),
    },
    {
      rule: '6',
      description: 'a message by a user who was never in the room',
      versions: allVersions,
      allowed: false,
      event: message(stranger),
    },
    ...['leave', 'invite', 'ban', 'knock', 'JOIN', null, ['join']].map((value) => ({
      rule: '6',
      description: `a message by a user with the membership ${JSON.stringify(value)}`,
      versions: allVersions,
      allowed: false,
      event: message(stranger),
      state: [membership(stranger, value)],
    })),
  ]);
});

describe('authorize, rule 7: m.room.third_party_invite', () => {
  const invite = (sender: string) => ({ type: 'm.room.third_party_invite', sender, stateKey: 'token' });
  testRules([
    {
      rule: '7.1',
      description: 'a third-party invite at the invite level',
      versions: allVersions,
      allowed: true,
      event: invite(member),
    },
    {
      rule: '7.1',
      description: 'a third-party invite at the invite level, whatever the level in events is',
      versions: allVersions,
      allowed: true,
      event: invite(member),
      state: [levels({ invite: 0, events: { 'm.room.third_party_invite': 100 } })],
    },
    {
      rule: '7.1',
      description: 'a third-party invite below the invite level',
      versions: allVersions,
      allowed: false,
      event: invite(member),
      state: [levels({ invite: 1, events: { 'm.room.third_party_invite': 0 } })],
    },
    {
      rule: '7.1',
      description: 'a third-party invite by a user outside of the room',
      versions: allVersions,
      allowed: false,
      event: invite(stranger),
    },
  ]);
});

describe('authorize, rule 8: the required power level', () => {
  testRules([
    {
      rule: '8',
      description: 'state at state_default',
      versions: allVersions,
      allowed: true,
      event: topic(moderator),
    },
    {
      rule: '8',
      description: 'state below state_default',
      versions: allVersions,
      allowed: false,
      event: topic(member),
    },
    {
      rule: '8',
      description: 'state at the level of its event type',
      versions: allVersions,
      allowed: true,
      event: topic(member),
      state: [levels({ events: { 'm.room.topic': 0 } })],
    },
    {
      rule: '8',
      description: 'a message below events_default',
      versions: allVersions,
      allowed: false,
      event: message(member),
      state: [levels({ events_default: 1 })],
    },
    {
      rule: '8',
      description: 'a message at events_default, by a user at users_default',
      versions: allVersions,
      allowed: true,
      event: message(member),
      state: [levels({ events_default: 7, users_default: 7 })],
    },
    {
      rule: '8',
      description: 'state by the creator in a room without a power levels event',
      versions: allVersions,
      allowed: true,
      event: topic(creator),
      without: [powerLevelsKey],
    },
    {
      rule: '8',
      description: 'state by a moderator in a room without a power levels event',
      versions: allVersions,
      allowed: false,
      event: topic(moderator),
      without: [powerLevelsKey],
    },
    {
      rule: '8',
      description: 'state by the creator, whatever state_default is, since v12',
      versions: versions(12),
      allowed: true,
      event: topic(creator),
      state: [levels({ state_default: Number.MAX_SAFE_INTEGER })],
    },
    {
      rule: '8',
      description: 'state by an additional creator since v12',
      versions: versions(12),
      allowed: true,
      event: topic(member),
      state: [create({ additional_creators: [member] })],
    },
    {
      rule: '8',
      description: 'state by an additional creator up to v11',
      versions: versions(1, 11),
      allowed: false,
      event: topic(member),
      state: [create({ creator, additional_creators: [member] })],
    },
    {
      rule: '8',
      description:
        'state by content.creator, who did not create the room, without a power levels event up to v10',
      versions: versions(1, 10),
      allowed: true,
      event: topic(member),
      state: [create({ creator: member })],
      without: [powerLevelsKey],
    },
    {
      rule: '8',
      description:
        'state by content.creator, who did not create the room, without a power levels event since v11',
      versions: versions(11),
      allowed: false,
      event: topic(member),
      state: [create({ creator: member })],
      without: [powerLevelsKey],
    },
    ...[{}, [], true, 'x', ''].map((level) => ({
      rule: '8',
      description: `a message by the creator if events_default is ${JSON.stringify(level)}`,
      versions: versions(1, 9),
      allowed: false,
      event: message(creator),
      state: [levels({ users: { [creator]: 100 }, events_default: level })],
    })),
  ]);
});

describe('authorize, rule 9: state keys that begin with @', () => {
  testRules([
    {
      rule: '9',
      description: "state with the sender's id as state key",
      versions: allVersions,
      allowed: true,
      event: topic(moderator, moderator),
    },
    {
      rule: '9',
      description: "state with another user's id as state key",
      versions: allVersions,
      allowed: false,
      event: topic(creator, moderator),
    },
    {
      rule: '9',
      description: 'state with a state key that begins with @ but is not a user id',
      versions: allVersions,
      allowed: false,
      event: topic(creator, '@'),
    },
    {
      rule: '9',
      description: 'state with any other state key',
      versions: allVersions,
      allowed: true,
      event: topic(creator, 'x@y'),
    },
  ]);
});

describe('authorize, v1 rule 11: m.room.redaction', () => {
  const redaction = (sender: string, redacts: string, eventId = '$redaction:b.example') => ({
    type: 'm.room.redaction',
    sender,
    redacts,
    eventId,
  });
  testRules([
    {
      rule: 'v1 11.1',
      description: 'a redaction by a user at the redact level',
      versions: allVersions,
      allowed: true,
      event: redaction(moderator, '$x:c.example'),
    },
    {
      rule: 'v1 11.2',
      description: 'a redaction of an event of the same server',
      versions: allVersions,
      allowed: true,
      event: redaction(member, '$x:b.example'),
    },
    {
      rule: 'v1 11.3',
      description: 'a redaction of an event of another server up to v2',
      versions: versions(1, 2),
      allowed: false,
      event: redaction(member, '$x:c.example'),
    },
    {
      rule: 'v1 11.3',
      description: 'a redaction of event ids without server up to v2',
      versions: versions(1, 2),
      allowed: false,
      event: redaction(member, '$x', '$y'),
    },
    {
      rule: 'v1 11',
      description: 'a redaction of an event of another server since v3',
      versions: versions(3),
      allowed: true,
      event: redaction(member, '$x:c.example'),
    },
  ]);
});

test('authorize asks isSignedBy whether the authorising server has signed the event, and without isSignedBy looks for the signature of that server', () => {
  const [version] = versions(12);
  const state = lookupIn(
    [create({}), membership(member, 'join')].map((fields) => testEvent(version!, fields)),
  );
  const rejoin = membership(member, 'join', member, { join_authorised_via_users_server: '@host:c.example' });
  const requestedServers: string[] = [];
  const verdict = authorize(testEvent(version!, rejoin), state, (_event, server) => {
    requestedServers.push(server);
    return true;
  });
  assert.equal(verdict.allowed, true);
  assert.deepEqual(requestedServers, ['c.example']);
  assert.equal(authorize(testEvent(version!, rejoin), state).allowed, false);
});
