import { describe } from 'node:test';
import { joinRule, membership, stranger, testRules, versions } from '../test/rule-cases.ts';

describe('authorize, rule 5.7: knocks', () => {
  const knock = membership(stranger, 'knock');
  testRules([
    {
      rule: '5.7.3',
      description: 'a knock with the join rule knock',
      versions: versions(7),
      allowed: true,
      event: knock,
      state: [joinRule('knock')],
    },
    {
      rule: '5.7.3',
      description: 'a knock with the join rule knock_restricted since v10',
      versions: versions(10),
      allowed: true,
      event: knock,
      state: [joinRule('knock_restricted')],
    },
    {
      rule: '5.7.1',
      description: 'a knock with the join rule knock_restricted up to v9',
      versions: versions(7, 9),
      allowed: false,
      event: knock,
      state: [joinRule('knock_restricted')],
    },
    ...['public', 'invite', 'private', 'restricted'].map((rule) => ({
      rule: '5.7.1',
      description: `a knock with the join rule ${rule}`,
      versions: versions(7),
      allowed: false,
      event: knock,
      state: [joinRule(rule)],
    })),
    {
      rule: '5.7.2',
      description: 'a knock for another user',
      versions: versions(7),
      allowed: false,
      event: membership(stranger, 'knock', '@other:b.example'),
      state: [joinRule('knock')],
    },
    ...['leave', 'knock'].map((before) => ({
      rule: '5.7.3',
      description: `a knock after the membership ${before}`,
      versions: versions(7),
      allowed: true,
      event: knock,
      state: [joinRule('knock'), membership(stranger, before)],
    })),
    ...['ban', 'invite', 'join'].map((before) => ({
      rule: '5.7.4',
      description: `a knock after the membership ${before}`,
      versions: versions(7),
      allowed: false,
      event: knock,
      state: [joinRule('knock'), membership(stranger, before)],
    })),
  ]);
});
