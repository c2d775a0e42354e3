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

const all = versions(1);
const topic = (sender: string, stateKey = '') => ({ type: 'm.room.topic', sender, stateKey });

describe('rule 4, m.federate', () => {
  const closed = { creator, 'm.federate': false };
  testRules([
    {
      rule: '4',
      description: 'another server in a room that is not federated',
      versions: all,
      allowed: false,
      event: message(member),
      state: [create(closed)],
    },
    {
      rule: '4',
      description: 'the same server in a room that is not federated',
      versions: all,
      allowed: true,
      event: message(moderator),
      state: [create(closed)],
    },
    ...[true, null, 'false', 0].map((federate) => ({
      rule: '4',
      description: `another server, m.federate is ${JSON.stringify(federate)}`,
      versions: all,
      allowed: true,
      event: message(member),
      state: [create({ creator, 'm.federate': federate })],
    })),
    {
      rule: '4',
      description: 'a room without create event',
      versions: all,
      allowed: false,
      event: message(creator),
      without: [createKey],
    },
  ]);
});

describe('v1 rule 4, m.room.aliases', () => {
  const aliases = (sender: string, stateKey?: string) => ({ type: 'm.room.aliases', sender, stateKey });
  testRules([
    {
      rule: 'v1 4.1',
      description: 'without state key',
      versions: versions(1, 5),
      allowed: false,
      event: aliases(member),
    },
    {
      rule: 'v1 4.1',
      description: 'without state key, of a sender without server',
      versions: versions(1, 5),
      allowed: false,
      event: aliases('nobody'),
    },
    {
      rule: 'v1 4.2',
      description: 'for another server',
      versions: versions(1, 5),
      allowed: false,
      event: aliases(creator, 'b.example'),
    },
    {
      rule: 'v1 4.3',
      description: 'for the own server, from outside of the room',
      versions: versions(1, 5),
      allowed: true,
      event: aliases(stranger, 'b.example'),
    },
    {
      rule: 'v1 4',
      description: 'from outside of the room since v6',
      versions: versions(6),
      allowed: false,
      event: aliases(stranger, 'b.example'),
    },
    {
      rule: 'v1 4',
      description: 'like any other state since v6',
      versions: versions(6),
      allowed: true,
      event: aliases(moderator, 'b.example'),
    },
  ]);
});

describe('rule 6, who is in the room', () => {
  testRules([
    { rule: '6', description: 'a message of a member', versions: all, allowed: true, event: message(member) },
    {
      rule: '6',
      description: 'a message from outside',
      versions: all,
      allowed: false,
      event: message(stranger),
    },
    ...['leave', 'invite', 'ban', 'knock', 'JOIN', null, ['join']].map((value) => ({
      rule: '6',
      description: `a message with the membership ${JSON.stringify(value)}`,
      versions: all,
      allowed: false,
      event: message(stranger),
      state: [membership(stranger, value)],
    })),
  ]);
});

describe('rule 7, m.room.third_party_invite', () => {
  const invite = (sender: string) => ({ type: 'm.room.third_party_invite', sender, stateKey: 'token' });
  testRules([
    { rule: '7.1', description: 'at the invite level', versions: all, allowed: true, event: invite(member) },
    {
      rule: '7.1',
      description: 'at the invite level, whatever `events` says',
      versions: all,
      allowed: true,
      event: invite(member),
      state: [levels({ invite: 0, events: { 'm.room.third_party_invite': 100 } })],
    },
    {
      rule: '7.1',
      description: 'below the invite level',
      versions: all,
      allowed: false,
      event: invite(member),
      state: [levels({ invite: 1, events: { 'm.room.third_party_invite': 0 } })],
    },
    { rule: '7.1', description: 'from outside', versions: all, allowed: false, event: invite(stranger) },
  ]);
});

describe('rule 8, the required power level', () => {
  testRules([
    {
      rule: '8',
      description: 'state at state_default',
      versions: all,
      allowed: true,
      event: topic(moderator),
    },
    {
      rule: '8',
      description: 'state below state_default',
      versions: all,
      allowed: false,
      event: topic(member),
    },
    {
      rule: '8',
      description: 'state at the level of its type',
      versions: all,
      allowed: true,
      event: topic(member),
      state: [levels({ events: { 'm.room.topic': 0 } })],
    },
    {
      rule: '8',
      description: 'a message below events_default',
      versions: all,
      allowed: false,
      event: message(member),
      state: [levels({ events_default: 1 })],
    },
    {
      rule: '8',
      description: 'a message at users_default',
      versions: all,
      allowed: true,
      event: message(member),
      state: [levels({ events_default: 7, users_default: 7 })],
    },
    {
      rule: '8',
      description: 'the creator without power levels',
      versions: all,
      allowed: true,
      event: topic(creator),
      without: [powerLevelsKey],
    },
    {
      rule: '8',
      description: 'others without power levels',
      versions: all,
      allowed: false,
      event: topic(moderator),
      without: [powerLevelsKey],
    },
    {
      rule: '8',
      description: 'the creator above every level since v12',
      versions: versions(12),
      allowed: true,
      event: topic(creator),
      state: [levels({ state_default: Number.MAX_SAFE_INTEGER })],
    },
    {
      rule: '8',
      description: 'an additional creator since v12',
      versions: versions(12),
      allowed: true,
      event: topic(member),
      state: [create({ additional_creators: [member] })],
    },
    {
      rule: '8',
      description: 'an additional creator up to v11',
      versions: versions(1, 11),
      allowed: false,
      event: topic(member),
      state: [create({ creator, additional_creators: [member] })],
    },
    {
      rule: '8',
      description: 'a creator who is not the sender, up to v10',
      versions: versions(1, 10),
      allowed: true,
      event: topic(member),
      state: [create({ creator: member })],
      without: [powerLevelsKey],
    },
    {
      rule: '8',
      description: 'a creator who is not the sender, since v11',
      versions: versions(11),
      allowed: false,
      event: topic(member),
      state: [create({ creator: member })],
      without: [powerLevelsKey],
    },
    ...[{}, [], true, 'x', ''].map((level) => ({
      rule: '8',
      description: `the level ${JSON.stringify(level)}, which nobody reaches`,
      versions: versions(1, 9),
      allowed: false,
      event: message(creator),
      state: [levels({ users: { [creator]: 100 }, events_default: level })],
    })),
  ]);
});

describe('rule 9, state keys of users', () => {
  testRules([
    {
      rule: '9',
      description: 'the own id',
      versions: all,
      allowed: true,
      event: topic(moderator, moderator),
    },
    {
      rule: '9',
      description: 'the id of another',
      versions: all,
      allowed: false,
      event: topic(creator, moderator),
    },
    {
      rule: '9',
      description: 'whatever begins with @',
      versions: all,
      allowed: false,
      event: topic(creator, '@'),
    },
    { rule: '9', description: 'anything else', versions: all, allowed: true, event: topic(creator, 'x@y') },
  ]);
});

describe('v1 rule 11, m.room.redaction', () => {
  const redaction = (sender: string, redacts: string, eventId = '$redaction:b.example') => ({
    type: 'm.room.redaction',
    sender,
    redacts,
    eventId,
  });
  testRules([
    {
      rule: 'v1 11.1',
      description: 'at the redact level',
      versions: all,
      allowed: true,
      event: redaction(moderator, '$x:c.example'),
    },
    {
      rule: 'v1 11.2',
      description: 'an event of the same server',
      versions: all,
      allowed: true,
      event: redaction(member, '$x:b.example'),
    },
    {
      rule: 'v1 11.3',
      description: 'an event of another server, up to v2',
      versions: versions(1, 2),
      allowed: false,
      event: redaction(member, '$x:c.example'),
    },
    {
      rule: 'v1 11.3',
      description: 'ids without a server, up to v2',
      versions: versions(1, 2),
      allowed: false,
      event: redaction(member, '$x', '$y'),
    },
    {
      rule: 'v1 11',
      description: 'an event of another server, since v3',
      versions: versions(3),
      allowed: true,
      event: redaction(member, '$x:c.example'),
    },
  ]);
});

test('an event that is not signed yet is decided on as if it were', () => {
  const [version] = versions(12);
  const state = lookupIn(
    [create({}), membership(member, 'join')].map((fields) => testEvent(version!, fields)),
  );
  const again = membership(member, 'join', member, { join_authorised_via_users_server: '@host:c.example' });
  const asked: string[] = [];
  const verdict = authorize(testEvent(version!, again), state, (_event, server) => {
    asked.push(server);
    return true;
  });
  assert.equal(verdict.allowed, true);
  assert.deepEqual(asked, ['c.example']);
  assert.equal(authorize(testEvent(version!, again), state).allowed, false);
});
