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

const allVersions = versions(1);
const join = membership(stranger, 'join');
const creatorLeft = [membership(creator, 'leave')];

describe('authorize, rule 5.3.1: the join after the create event', () => {
  const first = { ...membership(creator, 'join'), prevEventIds: [createId] };
  testRules([
    {
      rule: '5.3.1',
      description: "the creator's join after the create event",
      versions: allVersions,
      allowed: true,
      event: first,
      state: creatorLeft,
    },
    {
      rule: '5.3.1',
      description: "the creator's join after the create event, sent by another user",
      versions: allVersions,
      allowed: true,
      event: { ...first, sender: moderator },
      state: creatorLeft,
    },
    {
      rule: '5.3.1',
      description: "another user's join after the create event",
      versions: allVersions,
      allowed: false,
      event: { ...join, prevEventIds: [createId] },
    },
    {
      rule: '5.3.1',
      description: "the creator's join after another event",
      versions: allVersions,
      allowed: false,
      event: { ...first, prevEventIds: ['$other:a.example'] },
      state: creatorLeft,
    },
    {
      rule: '5.3.1',
      description: "the creator's join after the create event and another event",
      versions: allVersions,
      allowed: false,
      event: { ...first, prevEventIds: [createId, '$other:a.example'] },
      state: creatorLeft,
    },
    {
      rule: '5.3.1',
      description: 'a join by content.creator after the create event up to v10',
      versions: versions(1, 10),
      allowed: true,
      event: { ...join, prevEventIds: [createId] },
      state: [create({ creator: stranger })],
    },
    {
      rule: '5.3.1',
      description: 'a join by content.creator after the create event since v11',
      versions: versions(11),
      allowed: false,
      event: { ...join, prevEventIds: [createId] },
      state: [create({ creator: stranger })],
    },
    {
      rule: '5.3.1',
      description: 'a join by an additional creator after the create event',
      versions: versions(12),
      allowed: false,
      event: { ...join, prevEventIds: [createId] },
      state: [create({ additional_creators: [stranger] })],
    },
  ]);
});

describe('authorize, rules 5.3.2 to 5.3.4: joins by invitation', () => {
  testRules([
    {
      rule: '5.3.2',
      description: 'a join for another user',
      versions: allVersions,
      allowed: false,
      event: membership(stranger, 'join', creator),
      state: [joinRule('public')],
    },
    {
      rule: '5.3.3',
      description: 'a join by a banned user',
      versions: allVersions,
      allowed: false,
      event: join,
      state: [joinRule('public'), membership(stranger, 'ban')],
    },
    {
      rule: '5.3.4',
      description: 'a join by an invited user',
      versions: allVersions,
      allowed: true,
      event: join,
      state: [membership(stranger, 'invite')],
    },
    {
      rule: '5.3.4',
      description: 'a repeated join',
      versions: allVersions,
      allowed: true,
      event: membership(member, 'join'),
    },
    {
      rule: '5.3.4',
      description: 'a join by a user who is not invited',
      versions: allVersions,
      allowed: false,
      event: join,
    },
    {
      rule: '5.3.4',
      description: 'a join after a knock',
      versions: allVersions,
      allowed: false,
      event: join,
      state: [membership(stranger, 'knock')],
    },
    {
      rule: '5.3.4',
      description: 'a join by an invited user in a room without join rules event',
      versions: allVersions,
      allowed: true,
      event: join,
      state: [membership(stranger, 'invite')],
      without: [joinRulesKey],
    },
    {
      rule: '5.3.4',
      description: 'a join by a user who is not invited, in a room without join rules event',
      versions: allVersions,
      allowed: false,
      event: join,
      without: [joinRulesKey],
    },
    {
      rule: '5.3.4',
      description: 'a join by an invited user with the join rule knock since v7',
      versions: versions(7),
      allowed: true,
      event: join,
      state: [joinRule('knock'), membership(stranger, 'invite')],
    },
    {
      rule: '5.3.4',
      description: 'a join by a knocking user with the join rule knock',
      versions: allVersions,
      allowed: false,
      event: join,
      state: [joinRule('knock'), membership(stranger, 'knock')],
    },
    {
      rule: '5.3.4',
      description: 'a join by an invited user with the join rule knock up to v6',
      versions: versions(1, 6),
      allowed: false,
      event: join,
      state: [joinRule('knock'), membership(stranger, 'invite')],
    },
  ]);
});

/** A join that `user` authorised, signed by the servers of both users. */
const joinAuthorisedBy = (user: JsonValue) => ({
  ...membership(stranger, 'join', stranger, { join_authorised_via_users_server: user }),
  signatures: { 'a.example': { 'ed25519:1': 's' }, 'b.example': { 'ed25519:1': 's' } },
});

/** The restricted join rules, and the room version since which each exists. */
const restricted = [
  ['restricted', 8],
  ['knock_restricted', 10],
] as const;

describe('authorize, rule 5.3.5: restricted joins', () => {
  testRules(
    restricted.flatMap(([rule, since]) => [
      {
        rule: '5.3.5.1',
        description: `a join by an invited user with the join rule ${rule}`,
        versions: versions(since),
        allowed: true,
        event: join,
        state: [joinRule(rule), membership(stranger, 'invite')],
      },
      {
        rule: '5.3.5.1',
        description: `a repeated join with the join rule ${rule}`,
        versions: versions(since),
        allowed: true,
        event: membership(member, 'join'),
        state: [joinRule(rule)],
      },
      {
        rule: '5.3.5.3',
        description: `a join authorised by a member who may invite, with the join rule ${rule}`,
        versions: versions(since),
        allowed: true,
        event: joinAuthorisedBy(moderator),
        state: [joinRule(rule)],
      },
      {
        rule: '5.3.5.2',
        description: `a join without authorisation, with the join rule ${rule}`,
        versions: versions(since),
        allowed: false,
        event: join,
        state: [joinRule(rule)],
      },
      {
        rule: '5.3.5.2',
        description: `a join authorised by a user outside of the room, with the join rule ${rule}`,
        versions: versions(since),
        allowed: false,
        event: joinAuthorisedBy('@outside:a.example'),
        state: [joinRule(rule)],
      },
      {
        rule: '5.3.5.2',
        description: `a join authorised by a member who may not invite, with the join rule ${rule}`,
        versions: versions(since),
        allowed: false,
        event: joinAuthorisedBy(member),
        state: [joinRule(rule), levels({ invite: 1 })],
      },
      {
        rule: '5.3.5',
        description: `a join with the join rule ${rule} in versions without that rule`,
        versions: versions(1, since - 1),
        allowed: false,
        event: joinAuthorisedBy(moderator),
        state: [joinRule(rule), membership(stranger, 'invite')],
      },
      {
        rule: '5.3.3',
        description: `a join by a banned user with the join rule ${rule}`,
        versions: versions(since),
        allowed: false,
        event: joinAuthorisedBy(moderator),
        state: [joinRule(rule), membership(stranger, 'ban')],
      },
    ]),
  );
  testRules([
    {
      rule: '5.3.5.3',
      description: 'a restricted join authorised by the creator, whatever the invite level is, since v12',
      versions: versions(12),
      allowed: true,
      event: joinAuthorisedBy(creator),
      state: [joinRule('restricted'), levels({ invite: 1000 })],
    },
  ]);
});

describe('authorize, rules 5.3.6 and 5.3.7: other join rules', () => {
  testRules([
    {
      rule: '5.3.6',
      description: 'a join with the join rule public',
      versions: allVersions,
      allowed: true,
      event: join,
      state: [joinRule('public')],
    },
    ...['private', '', 'PUBLIC', 'unknown'].map((rule) => ({
      rule: '5.3.7',
      description: `a join by an invited user with the join rule "${rule}"`,
      versions: allVersions,
      allowed: false,
      event: join,
      state: [joinRule(rule), membership(stranger, 'invite')],
    })),
    ...[null, 1, ['public'], {}].map((rule) => ({
      rule: '5.3.7',
      description: `a join by a user who is not invited, with the join rule ${JSON.stringify(rule)}`,
      versions: allVersions,
      allowed: false,
      event: join,
      state: [joinRule(rule)],
    })),
  ]);
});
