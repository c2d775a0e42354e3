import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { plainCaches } from '../../../test/support/servers/caches.ts';
import { type Session, SessionCache } from './session-cache.ts';

const sessionOf = (userId: string): Session => ({
  requester: {
    userId,
    deviceId: 'A',
    isGuest: false,
    isAdmin: false,
    appservice: undefined,
    tokenId: 1,
  },
  isLocked: false,
  expiresAt: undefined,
});

describe('SessionCache', () => {
  it('deletes all sessions of a user on invalidate', () => {
    const cache = new SessionCache(plainCaches(manualClock()));
    for (const token of ['a1', 'a2']) cache.put(token, sessionOf('@a:test'), cache.generation, 0);
    cache.put('b1', sessionOf('@b:test'), cache.generation, 0);
    cache.invalidate('@a:test');
    assert.deepEqual([cache.get('a1'), cache.get('a2')], [undefined, undefined]);
    assert.equal(cache.get('b1')?.requester.userId, '@b:test');
  });

  it('ignores a session that was read before an invalidation', () => {
    const cache = new SessionCache(plainCaches(manualClock()));
    const { generation } = cache;
    cache.invalidate('@a:test');
    cache.put('a1', sessionOf('@a:test'), generation, 0);
    assert.equal(cache.get('a1'), undefined);
  });

  it('caches no session of a user between beginChange and invalidate, or until the change times out', () => {
    const cache = new SessionCache(plainCaches(manualClock()));
    cache.put('a1', sessionOf('@a:test'), cache.generation, 0);
    cache.beginChange('@a:test', 0);
    cache.put('a1', sessionOf('@a:test'), cache.generation, 1000);
    assert.equal(cache.get('a1'), undefined);
    cache.put('b1', sessionOf('@b:test'), cache.generation, 1000);
    assert.ok(cache.get('b1'));
    cache.put('a1', sessionOf('@a:test'), cache.generation, 60_000);
    assert.ok(cache.get('a1'));
    cache.beginChange('@a:test', 60_000);
    cache.invalidate('@a:test');
    cache.put('a1', sessionOf('@a:test'), cache.generation, 60_001);
    assert.ok(cache.get('a1'));
  });

  it('bounds the number of cached sessions, and deletes all sessions of a user even after evictions', () => {
    const cache = new SessionCache(plainCaches(manualClock()), 10);
    for (let i = 0; i < 100; i++) cache.put(`h${i}`, sessionOf(`@u${i % 3}:test`), cache.generation, 0);
    const held = () => Array.from({ length: 100 }, (_, i) => cache.get(`h${i}`)).filter(Boolean);
    assert.equal(held().length, 10);
    for (const user of ['@u0:test', '@u1:test', '@u2:test']) cache.invalidate(user);
    assert.deepEqual(held(), []);
  });
});
