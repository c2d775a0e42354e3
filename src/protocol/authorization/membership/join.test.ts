import { describe } from 'node:test';
import type { JsonValue } from '../../json.ts';
import {
  create,
  creator,
  joinRule,
  joinRulesKey,
  levels,
  member,
  membership,
  moderator,
  stranger,
  testRules,
  versions,
} from '../test/rule-cases.ts';
import { createId } from '../test/test-events.ts';

const all = versions(1);
const join = membership(stranger, 'join');
const alone = [membership(creator, 'leave')];

describe('rule 5.3.1, the join that follows the creation', () => {
  const first = { ...membership(creator, 'join'), prevEventIds: [createId] };
  testRules([
    {
      rule: '5.3.1',
      description: 'of the creator',
      versions: all,
      allowed: true,
      event: first,
      state: alone,
    },
    {
      rule: '5.3.1',
      description: 'of the creator, whoever sent it',
      versions: all,
      allowed: true,
      event: { ...first, sender: moderator },
      state: alone,
    },
    {
      rule: '5.3.1',
      description: 'of somebody else',
      versions: all,
      allowed: false,
      event: { ...join, prevEventIds: [createId] },
    },
    {
      rule: '5.3.1',
      description: 'after another event',
      versions: all,
      allowed: false,
      event: { ...first, prevEventIds: ['$other:a.example'] },
      state: alone,
    },
    {
      rule: '5.3.1',
      description: 'after the creation and another event',
      versions: all,
      allowed: false,
      event: { ...first, prevEventIds: [createId, '$other:a.example'] },
      state: alone,
    },
    {
      rule: '5.3.1',
      description: 'of whom the content names, up to v10',
      versions: versions(1, 10),
      allowed: true,
      event: { ...join, prevEventIds: [createId] },
      state: [create({ creator: stranger })],
    },
    {
      rule: '5.3.1',
      description: 'of whom the content names, since v11',
      versions: versions(11),
      allowed: false,
      event: { ...join, prevEventIds: [createId] },
      state: [create({ creator: stranger })],
    },
    {
      rule: '5.3.1',
      description: 'of an additional creator',
      versions: versions(12),
      allowed: false,
      event: { ...join, prevEventIds: [createId] },
      state: [create({ additional_creators: [stranger] })],
    },
  ]);
});

describe('rules 5.3.2 to 5.3.4, joining by invitation', () => {
  testRules([
    {
      rule: '5.3.2',
      description: 'for somebody else',
      versions: all,
      allowed: false,
      event: membership(stranger, 'join', creator),
      state: [joinRule('public')],
    },
    {
      rule: '5.3.3',
      description: 'while banned',
      versions: all,
      allowed: false,
      event: join,
      state: [joinRule('public'), membership(stranger, 'ban')],
    },
    {
      rule: '5.3.4',
      description: 'invited',
      versions: all,
      allowed: true,
      event: join,
      state: [membership(stranger, 'invite')],
    },
    { rule: '5.3.4', description: 'again', versions: all, allowed: true, event: membership(member, 'join') },
    { rule: '5.3.4', description: 'not invited', versions: all, allowed: false, event: join },
    {
      rule: '5.3.4',
      description: 'after knocking',
      versions: all,
      allowed: false,
      event: join,
      state: [membership(stranger, 'knock')],
    },
    {
      rule: '5.3.4',
      description: 'invited, without join rules',
      versions: all,
      allowed: true,
      event: join,
      state: [membership(stranger, 'invite')],
      without: [joinRulesKey],
    },
    {
      rule: '5.3.4',
      description: 'not invited, without join rules',
      versions: all,
      allowed: false,
      event: join,
      without: [joinRulesKey],
    },
    {
      rule: '5.3.4',
      description: 'invited, with the rule knock since v7',
      versions: versions(7),
      allowed: true,
      event: join,
      state: [joinRule('knock'), membership(stranger, 'invite')],
    },
    {
      rule: '5.3.4',
      description: 'not invited, with the rule knock',
      versions: all,
      allowed: false,
      event: join,
      state: [joinRule('knock'), membership(stranger, 'knock')],
    },
    {
      rule: '5.3.4',
      description: 'invited, with the rule knock up to v6',
      versions: versions(1, 6),
      allowed: false,
      event: join,
      state: [joinRule('knock'), membership(stranger, 'invite')],
    },
  ]);
});

/** A join that somebody authorised, signed by the server of that user. */
const via = (user: JsonValue) => ({
  ...membership(stranger, 'join', stranger, { join_authorised_via_users_server: user }),
  signatures: { 'a.example': { 'ed25519:1': 's' }, 'b.example': { 'ed25519:1': 's' } },
});

/** The rules, and since when there are they. */
const restricted = [
  ['restricted', 8],
  ['knock_restricted', 10],
] as const;

describe('rule 5.3.5, restricted joins', () => {
  testRules(
    restricted.flatMap(([rule, since]) => [
      {
        rule: '5.3.5.1',
        description: `${rule}, invited`,
        versions: versions(since),
        allowed: true,
        event: join,
        state: [joinRule(rule), membership(stranger, 'invite')],
      },
      {
        rule: '5.3.5.1',
        description: `${rule}, again`,
        versions: versions(since),
        allowed: true,
        event: membership(member, 'join'),
        state: [joinRule(rule)],
      },
      {
        rule: '5.3.5.3',
        description: `${rule}, authorised by a member who may invite`,
        versions: versions(since),
        allowed: true,
        event: via(moderator),
        state: [joinRule(rule)],
      },
      {
        rule: '5.3.5.2',
        description: `${rule}, authorised by nobody`,
        versions: versions(since),
        allowed: false,
        event: join,
        state: [joinRule(rule)],
      },
      {
        rule: '5.3.5.2',
        description: `${rule}, authorised by somebody outside`,
        versions: versions(since),
        allowed: false,
        event: via('@outside:a.example'),
        state: [joinRule(rule)],
      },
      {
        rule: '5.3.5.2',
        description: `${rule}, authorised by a member who may not invite`,
        versions: versions(since),
        allowed: false,
        event: via(member),
        state: [joinRule(rule), levels({ invite: 1 })],
      },
      {
        rule: '5.3.5',
        description: `${rule} in versions that do not know it`,
        versions: versions(1, since - 1),
        allowed: false,
        event: via(moderator),
        state: [joinRule(rule), membership(stranger, 'invite')],
      },
      {
        rule: '5.3.3',
        description: `${rule}, banned`,
        versions: versions(since),
        allowed: false,
        event: via(moderator),
        state: [joinRule(rule), membership(stranger, 'ban')],
      },
    ]),
  );
  testRules([
    {
      rule: '5.3.5.3',
      description: 'authorised by the creator, who is above every level',
      versions: versions(12),
      allowed: true,
      event: via(creator),
      state: [joinRule('restricted'), levels({ invite: 1000 })],
    },
  ]);
});

describe('rules 5.3.6 and 5.3.7, other join rules', () => {
  testRules([
    {
      rule: '5.3.6',
      description: 'public',
      versions: all,
      allowed: true,
      event: join,
      state: [joinRule('public')],
    },
    ...['private', '', 'PUBLIC', 'unknown'].map((rule) => ({
      rule: '5.3.7',
      description: `the rule "${rule}", invited`,
      versions: all,
      allowed: false,
      event: join,
      state: [joinRule(rule), membership(stranger, 'invite')],
    })),
    ...[null, 1, ['public'], {}].map((rule) => ({
      rule: '5.3.7',
      description: `the rule ${JSON.stringify(rule)}, not invited`,
      versions: all,
      allowed: false,
      event: join,
      state: [joinRule(rule)],
    })),
  ]);
});
