import { describe } from 'node:test';
import {
  create,
  creator,
  joinRule,
  levels,
  member,
  membership,
  moderator,
  powerLevelsKey,
  stranger,
  testRules,
  versions,
} from '../test/rule-cases.ts';

const all = versions(1);
const equal = levels({ users: { [moderator]: 50, [member]: 50 } });

describe('rule 5.5.1, leaving', () => {
  const leave = membership(stranger, 'leave');
  testRules([
    ...['invite', 'join'].map((before) => ({
      rule: '5.5.1',
      description: `after the membership ${before}`,
      versions: all,
      allowed: true,
      event: leave,
      state: [membership(stranger, before)],
    })),
    ...['leave', 'ban', 'unknown'].map((before) => ({
      rule: '5.5.1',
      description: `after the membership ${before}`,
      versions: all,
      allowed: false,
      event: leave,
      state: [membership(stranger, before)],
    })),
    { rule: '5.5.1', description: 'without ever being there', versions: all, allowed: false, event: leave },
    {
      rule: '5.5.1',
      description: 'after knocking since v7',
      versions: versions(7),
      allowed: true,
      event: leave,
      state: [membership(stranger, 'knock')],
    },
    {
      rule: '5.5.1',
      description: 'after knocking up to v6',
      versions: versions(1, 6),
      allowed: false,
      event: leave,
      state: [membership(stranger, 'knock')],
    },
  ]);
});

describe('rules 5.5.2 to 5.5.5, kicking and unbanning', () => {
  const kick = membership(member, 'leave', moderator);
  const unban = membership(stranger, 'leave', moderator);
  testRules([
    { rule: '5.5.4', description: 'at the kick level', versions: all, allowed: true, event: kick },
    {
      rule: '5.5.2',
      description: 'from outside',
      versions: all,
      allowed: false,
      event: kick,
      state: [membership(moderator, 'leave')],
    },
    {
      rule: '5.5.5',
      description: 'below the kick level',
      versions: all,
      allowed: false,
      event: kick,
      state: [levels({ users: { [moderator]: 50 }, kick: 51 })],
    },
    {
      rule: '5.5.5',
      description: 'somebody of equal level',
      versions: all,
      allowed: false,
      event: kick,
      state: [equal],
    },
    {
      rule: '5.5.5',
      description: 'the creator',
      versions: all,
      allowed: false,
      event: membership(creator, 'leave', moderator),
    },
    {
      rule: '5.5.5',
      description: 'a creator by another since v12',
      versions: versions(12),
      allowed: false,
      event: membership(member, 'leave', creator),
      state: [create({ additional_creators: [member] })],
    },
    {
      rule: '5.5.4',
      description: 'an invitation withdrawn',
      versions: all,
      allowed: true,
      event: unban,
      state: [membership(stranger, 'invite')],
    },
    {
      rule: '5.5.4',
      description: 'unbanning at the ban level',
      versions: all,
      allowed: true,
      event: unban,
      state: [membership(stranger, 'ban')],
    },
    {
      rule: '5.5.3',
      description: 'unbanning below the ban level',
      versions: all,
      allowed: false,
      event: unban,
      state: [membership(stranger, 'ban'), levels({ users: { [moderator]: 50 }, ban: 51 })],
    },
    {
      rule: '5.5.5',
      description: 'unbanning below the kick level',
      versions: all,
      allowed: false,
      event: unban,
      state: [membership(stranger, 'ban'), levels({ users: { [moderator]: 50 }, kick: 51 })],
    },
    {
      rule: '5.5.5',
      description: 'without power levels',
      versions: all,
      allowed: false,
      event: kick,
      without: [powerLevelsKey],
    },
  ]);
});

describe('rule 5.6, banning', () => {
  const ban = membership(member, 'ban', moderator);
  testRules([
    { rule: '5.6.2', description: 'at the ban level', versions: all, allowed: true, event: ban },
    {
      rule: '5.6.2',
      description: 'somebody who is not there',
      versions: all,
      allowed: true,
      event: membership(stranger, 'ban', moderator),
    },
    {
      rule: '5.6.1',
      description: 'from outside',
      versions: all,
      allowed: false,
      event: ban,
      state: [membership(moderator, 'leave')],
    },
    {
      rule: '5.6.3',
      description: 'below the ban level',
      versions: all,
      allowed: false,
      event: ban,
      state: [levels({ users: { [moderator]: 50 }, ban: 51 })],
    },
    {
      rule: '5.6.3',
      description: 'somebody of equal level',
      versions: all,
      allowed: false,
      event: ban,
      state: [equal],
    },
    {
      rule: '5.6.3',
      description: 'oneself',
      versions: all,
      allowed: false,
      event: membership(moderator, 'ban', moderator),
    },
    {
      rule: '5.6.2',
      description: 'whoever is not a creator, by a creator since v12',
      versions: versions(12),
      allowed: true,
      event: membership(member, 'ban', creator),
      state: [levels({ users: { [member]: Number.MAX_SAFE_INTEGER }, ban: Number.MAX_SAFE_INTEGER })],
    },
  ]);
});

describe('rule 5.7, knocking', () => {
  const knock = membership(stranger, 'knock');
  testRules([
    {
      rule: '5.7.3',
      description: 'with the rule knock',
      versions: versions(7),
      allowed: true,
      event: knock,
      state: [joinRule('knock')],
    },
    {
      rule: '5.7.3',
      description: 'with the rule knock_restricted since v10',
      versions: versions(10),
      allowed: true,
      event: knock,
      state: [joinRule('knock_restricted')],
    },
    {
      rule: '5.7.1',
      description: 'with the rule knock_restricted up to v9',
      versions: versions(7, 9),
      allowed: false,
      event: knock,
      state: [joinRule('knock_restricted')],
    },
    ...['public', 'invite', 'private', 'restricted'].map((rule) => ({
      rule: '5.7.1',
      description: `with the rule ${rule}`,
      versions: versions(7),
      allowed: false,
      event: knock,
      state: [joinRule(rule)],
    })),
    {
      rule: '5.7.2',
      description: 'for somebody else',
      versions: versions(7),
      allowed: false,
      event: membership(stranger, 'knock', '@other:b.example'),
      state: [joinRule('knock')],
    },
    ...['leave', 'knock'].map((before) => ({
      rule: '5.7.3',
      description: `after the membership ${before}`,
      versions: versions(7),
      allowed: true,
      event: knock,
      state: [joinRule('knock'), membership(stranger, before)],
    })),
    ...['ban', 'invite', 'join'].map((before) => ({
      rule: '5.7.4',
      description: `after the membership ${before}`,
      versions: versions(7),
      allowed: false,
      event: knock,
      state: [joinRule('knock'), membership(stranger, before)],
    })),
  ]);
});
