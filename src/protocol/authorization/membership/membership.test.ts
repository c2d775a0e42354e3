import { describe } from 'node:test';
import { create, creator, membership, moderator, stranger, testRules, versions } from '../test/rule-cases.ts';
import { createId } from '../test/test-events.ts';

const allVersions = versions(1);

describe('authorize, rule 5: m.room.member', () => {
  testRules([
    {
      rule: '5.1',
      description: 'a membership event without state key',
      versions: allVersions,
      allowed: false,
      event: { ...membership(creator, 'join'), stateKey: undefined },
    },
    {
      rule: '5.1',
      description: 'a membership event without state key in a room without creator',
      versions: versions(1, 10),
      allowed: false,
      event: { ...membership(creator, 'join'), stateKey: undefined, prevEventIds: [createId] },
      state: [create({ creator: 1 })],
    },
    {
      rule: '5.1',
      description: 'a membership event without membership',
      versions: allVersions,
      allowed: false,
      event: { ...membership(creator, 'join'), content: {} },
    },
    ...[null, '', 'JOIN', 'unknown', 1, {}, ['join'], 'constructor'].map((value) => ({
      rule: '5.8',
      description: `the membership ${JSON.stringify(value)}`,
      versions: allVersions,
      allowed: false,
      event: membership(creator, value),
    })),
    {
      rule: '5.8',
      description: 'a knock up to v6',
      versions: versions(1, 6),
      allowed: false,
      event: membership(stranger, 'knock'),
    },
  ]);
});

const authorised = (authoriser: string | number, server?: string) => ({
  ...membership(moderator, 'join', moderator, { join_authorised_via_users_server: authoriser }),
  signatures: server === undefined ? {} : { [server]: { 'ed25519:1': 'signature' } },
});

describe('authorize, rule 5.2: the signature of the server that authorised a join', () => {
  testRules([
    {
      rule: '5.2.1',
      description: 'a join signed by the authorising server',
      versions: allVersions,
      allowed: true,
      event: authorised('@any:c.example', 'c.example'),
    },
    {
      rule: '5.2.1',
      description: 'a join not signed by the authorising server since v8',
      versions: versions(8),
      allowed: false,
      event: authorised('@any:c.example', 'a.example'),
    },
    {
      rule: '5.2.1',
      description: 'a join not signed by the authorising server up to v7',
      versions: versions(1, 7),
      allowed: true,
      event: authorised('@any:c.example'),
    },
    {
      rule: '5.2.1',
      description: 'a join authorised by a user id without server since v8',
      versions: versions(8),
      allowed: false,
      event: authorised('any', 'any'),
    },
    {
      rule: '5.2.1',
      description: 'a join whose authorising user is not text since v8',
      versions: versions(8),
      allowed: false,
      event: authorised(1, '1'),
    },
    {
      rule: '5.2.1',
      description: 'a leave not signed by the authorising server since v8',
      versions: versions(8),
      allowed: false,
      event: membership(moderator, 'leave', moderator, { join_authorised_via_users_server: creator }),
    },
  ]);
});
