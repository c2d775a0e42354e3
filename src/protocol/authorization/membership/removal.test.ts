import { describe } from 'node:test';
import {
  create,
  creator,
  levels,
  member,
  membership,
  moderator,
  powerLevelsKey,
  stranger,
  testRules,
  versions,
} from '../test/rule-cases.ts';

const allVersions = versions(1);
const sameLevels = levels({ users: { [moderator]: 50, [member]: 50 } });

describe('authorize, rule 5.5.1: leaving', () => {
  const leave = membership(stranger, 'leave');
  testRules([
    ...['invite', 'join'].map((before) => ({
      rule: '5.5.1',
      description: `leaving with the membership ${before}`,
      versions: allVersions,
      allowed: true,
      event: leave,
      state: [membership(stranger, before)],
    })),
    ...['leave', 'ban', 'unknown'].map((before) => ({
      rule: '5.5.1',
      description: `leaving with the membership ${before}`,
      versions: allVersions,
      allowed: false,
      event: leave,
      state: [membership(stranger, before)],
    })),
    {
      rule: '5.5.1',
      description: 'leaving without any membership',
      versions: allVersions,
      allowed: false,
      event: leave,
    },
    {
      rule: '5.5.1',
      description: 'retracting a knock since v7',
      versions: versions(7),
      allowed: true,
      event: leave,
      state: [membership(stranger, 'knock')],
    },
    {
      rule: '5.5.1',
      description: 'retracting a knock up to v6',
      versions: versions(1, 6),
      allowed: false,
      event: leave,
      state: [membership(stranger, 'knock')],
    },
  ]);
});

describe('authorize, rules 5.5.2 to 5.5.5: kicks and unbans', () => {
  const kick = membership(member, 'leave', moderator);
  const removeStranger = membership(stranger, 'leave', moderator);
  testRules([
    {
      rule: '5.5.4',
      description: 'a kick at the kick level',
      versions: allVersions,
      allowed: true,
      event: kick,
    },
    {
      rule: '5.5.2',
      description: 'a kick by a user outside of the room',
      versions: allVersions,
      allowed: false,
      event: kick,
      state: [membership(moderator, 'leave')],
    },
    {
      rule: '5.5.5',
      description: 'a kick below the kick level',
      versions: allVersions,
      allowed: false,
      event: kick,
      state: [levels({ users: { [moderator]: 50 }, kick: 51 })],
    },
    {
      rule: '5.5.5',
      description: 'a kick of a user with the same level',
      versions: allVersions,
      allowed: false,
      event: kick,
      state: [sameLevels],
    },
    {
      rule: '5.5.5',
      description: 'a kick of the creator by a moderator',
      versions: allVersions,
      allowed: false,
      event: membership(creator, 'leave', moderator),
    },
    {
      rule: '5.5.5',
      description: 'a kick of a creator by another creator since v12',
      versions: versions(12),
      allowed: false,
      event: membership(member, 'leave', creator),
      state: [create({ additional_creators: [member] })],
    },
    {
      rule: '5.5.4',
      description: 'withdrawing an invite',
      versions: allVersions,
      allowed: true,
      event: removeStranger,
      state: [membership(stranger, 'invite')],
    },
    {
      rule: '5.5.4',
      description: 'an unban at the ban level',
      versions: allVersions,
      allowed: true,
      event: removeStranger,
      state: [membership(stranger, 'ban')],
    },
    {
      rule: '5.5.3',
      description: 'an unban below the ban level',
      versions: allVersions,
      allowed: false,
      event: removeStranger,
      state: [membership(stranger, 'ban'), levels({ users: { [moderator]: 50 }, ban: 51 })],
    },
    {
      rule: '5.5.5',
      description: 'an unban below the kick level',
      versions: allVersions,
      allowed: false,
      event: removeStranger,
      state: [membership(stranger, 'ban'), levels({ users: { [moderator]: 50 }, kick: 51 })],
    },
    {
      rule: '5.5.5',
      description: 'a kick by a moderator in a room without a power levels event',
      versions: allVersions,
      allowed: false,
      event: kick,
      without: [powerLevelsKey],
    },
  ]);
});

describe('authorize, rule 5.6: bans', () => {
  const ban = membership(member, 'ban', moderator);
  testRules([
    {
      rule: '5.6.2',
      description: 'a ban at the ban level',
      versions: allVersions,
      allowed: true,
      event: ban,
    },
    {
      rule: '5.6.2',
      description: 'a ban of a user outside of the room',
      versions: allVersions,
      allowed: true,
      event: membership(stranger, 'ban', moderator),
    },
    {
      rule: '5.6.1',
      description: 'a ban by a user outside of the room',
      versions: allVersions,
      allowed: false,
      event: ban,
      state: [membership(moderator, 'leave')],
    },
    {
      rule: '5.6.3',
      description: 'a ban below the ban level',
      versions: allVersions,
      allowed: false,
      event: ban,
      state: [levels({ users: { [moderator]: 50 }, ban: 51 })],
    },
    {
      rule: '5.6.3',
      description: 'a ban of a user with the same level',
      versions: allVersions,
      allowed: false,
      event: ban,
      state: [sameLevels],
    },
    {
      rule: '5.6.3',
      description: 'a ban of oneself',
      versions: allVersions,
      allowed: false,
      event: membership(moderator, 'ban', moderator),
    },
    {
      rule: '5.6.2',
      description: 'a ban of a user of any level by a creator since v12',
      versions: versions(12),
      allowed: true,
      event: membership(member, 'ban', creator),
      state: [levels({ users: { [member]: Number.MAX_SAFE_INTEGER }, ban: Number.MAX_SAFE_INTEGER })],
    },
  ]);
});
