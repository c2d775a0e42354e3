import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { manualClock } from '../../test/support/clocks/manual-clock.ts';
import { plainCaches } from '../../test/support/servers/caches.ts';
import { FollowedPresence } from './followed-presence.ts';
import { offline, type PresenceStatus } from './presence-status.ts';

const [alice, bob] = ['@alice:test', '@bob:test'];
const online: PresenceStatus = { ...offline, presence: 'online', statusMsg: 'here', lastActive: 1 };
const away: PresenceStatus = { ...offline, presence: 'unavailable', statusMsg: 'away', lastActive: 2 };
const wentOffline: PresenceStatus = { ...away, presence: 'offline' };

const open = () => new FollowedPresence(plainCaches(manualClock()));
const fact = (userId: string, status: PresenceStatus) => ({
  changes: new Map([[userId, status]]),
  rooms: new Map(),
});

describe('FollowedPresence', () => {
  it('keeps presence that was announced before the stored presence was read, also the presence of users who went offline', () => {
    const followed = open();
    followed.follow(fact(alice, away));
    followed.follow(fact(bob, wentOffline));
    followed.restore(
      new Map([
        [alice, online],
        [bob, online],
      ]),
    );
    assert.deepEqual([followed.get(alice), followed.get(bob)], [away, wentOffline]);
    assert.deepEqual([...followed.notOffline.keys()], [alice]);
  });

  it('returns the last presence of a user who went offline, until the account is closed', () => {
    const followed = open();
    followed.restore(new Map([[alice, online]]));
    followed.follow(fact(alice, wentOffline));
    assert.deepEqual(followed.get(alice), wentOffline);
    assert.equal(followed.notOffline.size, 0);
    followed.forget(alice);
    assert.deepEqual(followed.get(alice), offline);
  });
});
