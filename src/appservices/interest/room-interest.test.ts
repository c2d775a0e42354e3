import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { plainCaches } from '../../../test/support/servers/caches.ts';
import type { Appservice } from '../../appservice-registry/index.ts';
import { RoomInterest, type RoomInterestDeps } from './room-interest.ts';
import { UserInterest } from './user-interest.ts';

const emptyNamespace = { has: () => false, isEmpty: true };
const bridge = {
  id: 'bridge',
  rooms: emptyNamespace,
  aliases: { has: (alias: string) => alias.startsWith('#bridge'), isEmpty: false },
} as unknown as Appservice;

describe('RoomInterest', () => {
  const open = (overrides: Partial<RoomInterestDeps> = {}) =>
    new RoomInterest({
      services: [bridge],
      users: { servicesOf: (userId: string) => (userId.startsWith('@bridge') ? [bridge] : []) } as never,
      heads: { peek: () => undefined, get: async () => undefined } as never,
      caches: plainCaches(manualClock()),
      aliasesOf: async () => [],
      membersBeforeUnhandledFacts: () => new Map(),
      ...overrides,
    });
  const headOf = (...joined: string[]) =>
    ({ peek: () => ({ members: new Map(joined.map((userId) => [userId, 'join'])) }) }) as never;

  it('finds the services of a room by its members as they were before the membership changes that are not handled yet', async () => {
    const heads = headOf('@bridge_joining:test');
    const servicesBefore = (userId: string, isJoined: boolean) =>
      open({ heads, membersBeforeUnhandledFacts: () => new Map([[userId, isJoined]]) }).servicesOf('!room');
    assert.deepEqual(await open({ heads }).servicesOf('!room'), [bridge]);
    assert.deepEqual(await servicesBefore('@bridge_joining:test', false), []);
    assert.deepEqual(await servicesBefore('@bridge_leaving:test', true), [bridge]);
  });

  it('does not cache services that were read before an alias or a membership changed', async () => {
    let aliases: string[] = [];
    const aliasesRead = Promise.withResolvers<void>();
    const interest = open({
      aliasesOf: async () => {
        const aliasesBefore = aliases;
        await aliasesRead.promise;
        return aliasesBefore;
      },
    });
    for (const change of [
      () => interest.forget('!room'),
      () => interest.change('!room', { userId: '@bridge_a:test', isJoined: true }),
    ]) {
      aliases = [];
      const loading = interest.servicesOf('!room');
      aliases = ['#bridge:test'];
      change();
      aliasesRead.resolve();
      assert.deepEqual(await loading, []);
      assert.deepEqual(await interest.servicesOf('!room'), [bridge]);
      interest.forget('!room');
    }
  });

  it('for an event in a cached room, matches only a new sender against the namespaces of the services, and no other member', async () => {
    let matches = 0;
    const matching = (isMatch: boolean) => {
      matches++;
      return isMatch;
    };
    const services = Array.from({ length: 100 }, (_, number) => {
      const sender = `@bot${number}:test`;
      const users = { has: (userId: string) => matching(userId === sender) };
      return {
        id: `${number}`,
        sender: '',
        users,
        rooms: emptyNamespace,
        aliases: emptyNamespace,
        mayActAs: users.has,
      };
    }) as unknown as Appservice[];
    const users = new UserInterest(services, 'test', plainCaches(manualClock()));
    const members = Array.from({ length: 1_000 }, (_, number) => `@member${number}:test`);
    const bots = services.map((_, number) => `@bot${number}:test`);
    const interest = open({ services, users, heads: headOf(...members, ...bots) });
    const matchesOf = async (sender: string) => {
      matches = 0;
      assert.deepEqual(users.servicesInterestedIn(sender), []);
      assert.equal((await interest.servicesOf('!room')).length, 100);
      return matches;
    };
    await matchesOf('@member0:test');
    assert.deepEqual([await matchesOf('@new:test'), await matchesOf('@new:test')], [100, 0]);
  });

  it('measures cached rooms again when users join, so that the cache stays within its bound', async () => {
    const interest = open();
    for (const roomId of ['!one', '!two']) {
      await interest.servicesOf(roomId);
      for (let count = 0; count < 40_000; count++)
        interest.change(roomId, { userId: `@bridge_${count}:test`, isJoined: true });
    }
    assert.deepEqual([interest.isCached('!one'), interest.isCached('!two')], [false, true]);
  });
});
