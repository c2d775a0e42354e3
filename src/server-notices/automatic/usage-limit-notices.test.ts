import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { plainCaches } from '../../../test/support/servers/caches.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import { forbidden } from '../../protocol/index.ts';
import { OncePerUser } from './once-per-user.ts';
import { UsageLimitNotices } from './usage-limit-notices.ts';

describe('UsageLimitNotices', () => {
  it('pins the notice about the user limit without unpinning other notices, and unpins only this notice, after an hour in which the limit was not reached', async () => {
    const pins: unknown[] = [];
    const pinned = { event: { content: { pinned: ['$rules'] } } };
    const rooms = {
      engine: {
        heads: { get: async () => ({ entry: () => ({ nid: 1 }) }) },
        events: {
          get: async () => pinned,
          getManyById: async () =>
            new Map([
              ['$rules', { event: { content: { msgtype: 'm.server_notice' } } }],
              [
                '$notice',
                {
                  event: {
                    content: {
                      msgtype: 'm.server_notice',
                      server_notice_type: 'm.server_notice.usage_limit_reached',
                    },
                  },
                },
              ],
            ]),
        },
      },
    };
    const send = async (_user: string, content: object, { type }: { type?: string } = {}) => {
      if (type === 'm.room.pinned_events') pins.push(content);
      return '$notice';
    };
    const clock = manualClock();
    const oncePerUser = new OncePerUser('users', { caches: plainCaches(clock), clock, log: silentLogger });
    const limit = { isReached: true, appliesTo: () => true, error: () => forbidden('full') };
    const notices = new UsageLimitNotices({
      rooms: rooms as never,
      notices: { send: send as never },
      noticeRooms: { of: async () => '!notices' },
      limit,
      oncePerUser,
      clock,
      alerts: true,
    });
    notices.onActivity('@alice:test');
    await oncePerUser.settled();
    assert.deepEqual(pins, [{ pinned: ['$rules', '$notice'] }]);
    const activityAfter = async (time: number, isReached: boolean) => {
      clock.advance(time);
      limit.isReached = isReached;
      notices.onActivity('@alice:test');
      await oncePerUser.settled();
    };
    pinned.event.content.pinned = ['$rules', '$notice'];
    await activityAfter(1, false);
    await activityAfter(3_599_999, false);
    // The limit is reached again within the hour.
    await activityAfter(0, true);
    await activityAfter(1, false);
    await activityAfter(3_599_999, false);
    assert.equal(pins.length, 1);
    await activityAfter(1, false);
    assert.deepEqual(pins.slice(1), [{ pinned: ['$rules'] }]);
  });
});
