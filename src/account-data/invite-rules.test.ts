import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { JsonObject } from '../protocol/index.ts';
import { readInviteRules } from './invite-rules.ts';

const decide = (content: JsonObject, inviter: string) => readInviteRules(content)(inviter);

describe('readInviteRules', () => {
  it('returns no decision without rules, or when they are disabled', () => {
    assert.equal(decide({}, '@a:good'), undefined);
    assert.equal(decide({ default_action: 'allow' }, '@a:good'), undefined);
    assert.equal(decide({ default_action: 'block', enabled: false }, '@a:good'), undefined);
  });

  it('blocks all inviters except allowed users and servers', () => {
    const content = { default_action: 'block', allowed_users: ['@friend:bad'], allowed_servers: ['*.good'] };
    assert.equal(decide(content, '@a:bad'), 'block');
    assert.equal(decide(content, '@friend:bad'), 'allow');
    assert.equal(decide(content, '@a:very.good'), 'allow');
  });

  it('checks users before servers, and in each case allowed before ignored before blocked', () => {
    const anyone = ['*'];
    const inOrder = [
      ['allowed_users', 'allow'],
      ['ignored_users', 'ignore'],
      ['blocked_users', 'block'],
      ['allowed_servers', 'allow'],
      ['ignored_servers', 'ignore'],
      ['blocked_servers', 'block'],
    ] as const;
    for (const [index, [, expected]] of inOrder.entries()) {
      const content = Object.fromEntries(inOrder.slice(index).map(([name]) => [name, anyone]));
      assert.equal(decide(content, '@a:somewhere'), expected);
    }
  });

  it('matches any number of literals, and at most 500 globs of one list', () => {
    const content = { blocked_users: ['@spam-?:*', '@exact:bad'] };
    assert.equal(decide(content, '@spam-1:anywhere'), 'block');
    assert.equal(decide(content, '@spam-11:anywhere'), undefined);
    assert.equal(decide(content, '@exact:bad'), 'block');
    assert.equal(decide(content, '@exact:bad.example'), undefined);
    const many = [...Array.from({ length: 500 }, (_, index) => `@${index}-*:x`), '@late*', '@late:x'];
    assert.equal(decide({ blocked_users: many }, '@499-a:x'), 'block');
    assert.equal(decide({ blocked_users: many }, '@later:x'), undefined);
    assert.equal(decide({ blocked_users: many }, '@late:x'), 'block');
  });

  it('matches globs of all lists up to 32,768 characters in total, in the order of the lists', () => {
    const lists = ['allowed_users', 'ignored_users', 'blocked_users', 'allowed_servers', 'ignored_servers'];
    const globs = (count: number) =>
      Array.from({ length: count }, (_, index) => `@${index}*`.padEnd(64, 'x'));
    const content = Object.fromEntries(lists.map((name) => [name, globs(102)]));
    const tooLong = `*${'x'.repeat(2_000)}`;
    const servers = [tooLong, '*.two', '*.much'];
    assert.equal(decide({ ...content, blocked_servers: [...servers, 'exact'] }, '@a:b.much'), 'block');
    const full = { ...content, allowed_users: globs(104), blocked_servers: [...servers, 'exact'] };
    assert.equal(decide(full, '@a:b.much'), undefined);
    assert.equal(decide(full, '@a:exact'), 'block');
    assert.equal(decide(full, `@3:${'x'.repeat(61)}`), 'allow');
  });

  it('returns a valid decision or none for any JSON in the rules', () => {
    const names = ['allowed_users', 'blocked_users', 'blocked_servers', 'default_action', 'enabled'];
    const anything = fc.dictionary(fc.constantFrom(...names), fc.jsonValue());
    fc.assert(
      fc.property(anything, fc.string(), (content, inviter) => {
        const decision = decide(content as JsonObject, inviter);
        assert.ok(decision === undefined || ['allow', 'ignore', 'block'].includes(decision));
      }),
    );
  });
});
