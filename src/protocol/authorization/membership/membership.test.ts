import { describe } from 'node:test';
import { create, creator, membership, moderator, stranger, testRules, versions } from '../test/rule-cases.ts';
import { createId } from '../test/test-events.ts';

const all = versions(1);

describe('rule 5, m.room.member', () => {
  testRules([
    {
      rule: '5.1',
      description: 'without state key',
      versions: all,
      allowed: false,
      event: { ...membership(creator, 'join'), stateKey: undefined },
    },
    {
      rule: '5.1',
      description: 'without state key, in a room without creator',
      versions: versions(1, 10),
      allowed: false,
      event: { ...membership(creator, 'join'), stateKey: undefined, prevEventIds: [createId] },
      state: [create({ creator: 1 })],
    },
    {
      rule: '5.1',
      description: 'without membership',
      versions: all,
      allowed: false,
      event: { ...membership(creator, 'join'), content: {} },
    },
    ...[null, '', 'JOIN', 'unknown', 1, {}, ['join'], 'constructor'].map((value) => ({
      rule: '5.8',
      description: `the membership ${JSON.stringify(value)}`,
      versions: all,
      allowed: false,
      event: membership(creator, value),
    })),
    {
      rule: '5.8',
      description: 'knocking up to v6',
      versions: versions(1, 6),
      allowed: false,
      event: membership(stranger, 'knock'),
    },
  ]);
});

const authorised = (via: string | number, server?: string) => ({
  ...membership(moderator, 'join', moderator, { join_authorised_via_users_server: via }),
  signatures: server === undefined ? {} : { [server]: { 'ed25519:1': 'signature' } },
});

describe('rule 5.2, the server that authorised a join', () => {
  testRules([
    {
      rule: '5.2.1',
      description: 'signed by it',
      versions: all,
      allowed: true,
      event: authorised('@any:c.example', 'c.example'),
    },
    {
      rule: '5.2.1',
      description: 'not signed by it, since v8',
      versions: versions(8),
      allowed: false,
      event: authorised('@any:c.example', 'a.example'),
    },
    {
      rule: '5.2.1',
      description: 'not signed by it, up to v7',
      versions: versions(1, 7),
      allowed: true,
      event: authorised('@any:c.example'),
    },
    {
      rule: '5.2.1',
      description: 'a user without server, since v8',
      versions: versions(8),
      allowed: false,
      event: authorised('any', 'any'),
    },
    {
      rule: '5.2.1',
      description: 'no user, since v8',
      versions: versions(8),
      allowed: false,
      event: authorised(1, '1'),
    },
    {
      rule: '5.2.1',
      description: 'any membership, since v8',
      versions: versions(8),
      allowed: false,
      event: membership(moderator, 'leave', moderator, { join_authorised_via_users_server: creator }),
    },
  ]);
});
