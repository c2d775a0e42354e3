import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../test/support/databases/databases.ts';
import { alice, bob, carol } from '../../test/support/rooms/rooms.ts';
import { PresenceUnderTest } from './test/presence-under-test.ts';

const second = 1_000;
const minute = 60 * second;

forSelectedDatabases(import.meta.url, (open) => {
  describe('the options of presence', () => {
    it('ignores presence of clients when presence is off or untracked, and accepts presence of modules when it is untracked [option: presence.enabled]', async () => {
      for (const enabled of [true, false, 'untracked'] as const) {
        const fixture = await PresenceUnderTest.open(open, { enabled });
        await fixture.rooms.room(alice, bob, carol);
        fixture.sync(alice);
        fixture.presence.set({ userId: alice, deviceId: 'D' }, 'online', 'hello');
        const status = {
          presence: 'online',
          statusMsg: undefined,
          lastActive: 5,
          currentlyActive: true,
        } as const;
        fixture.presence.reportByModule(carol, status);
        const expected = {
          true: { [alice]: 'online', [carol]: 'online' },
          false: {},
          untracked: { [carol]: 'online' },
        };
        assert.deepEqual(await fixture.presenceEvents(bob, undefined), expected[`${enabled}`]);
        const seen = await fixture.presence.get(bob, alice);
        assert.equal(seen.presence, enabled === true ? 'online' : 'offline');
        await fixture.presence.stop();
      }
    });

    it('includes offline users in an initial sync only if the option is on [option: presence.include_offline_users_on_sync]', async () => {
      for (const includeOffline of [false, true]) {
        const fixture = await PresenceUnderTest.open(open, { includeOffline });
        await fixture.rooms.room(alice, bob);
        fixture.sync(alice)();
        await fixture.pass(minute);
        const before = fixture.position;
        await fixture.presence.stop();
        assert.deepEqual(
          await fixture.presenceEvents(bob, undefined),
          includeOffline ? { [alice]: 'offline' } : {},
        );
        assert.deepEqual(await fixture.presenceEvents(bob, before), {});
      }
    });

    it('does not limit changes of presence while presence is untracked, because they have no effect [option: presence.enabled, rc_presence.per_user]', async () => {
      const limit = { per_second: 0.1, burst_count: 1 };
      const { presence } = await PresenceUnderTest.open(open, { enabled: 'untracked', limit });
      for (let times = 0; times < 3; times++) {
        presence.set({ userId: alice, deviceId: 'D' }, 'online', undefined);
      }
      await presence.stop();
    });

    it('limits how often a user changes presence [option: rc_presence.per_user]', async () => {
      const fixture = await PresenceUnderTest.open(open, { limit: { per_second: 0.1, burst_count: 1 } });
      await fixture.rooms.room(alice, bob);
      const presenceOf = async () => (await fixture.presence.get(bob, alice)).presence;
      fixture.sync(alice);
      fixture.sync(alice, 'unavailable');
      assert.equal(await presenceOf(), 'online', 'a sync over the limit changes nothing and does not fail');
      fixture.sync(alice);
      const device = { userId: alice, deviceId: 'D' };
      assert.throws(() => fixture.presence.set(device, 'unavailable', undefined), {
        errcode: 'M_LIMIT_EXCEEDED',
      });
      const bridged = { ...device, isUnlimited: true };
      fixture.presence.beginSync(bridged, 'unavailable')();
      assert.equal(await presenceOf(), 'unavailable', 'users of application services are not limited');
      fixture.presence.set(bridged, 'online', undefined);
      assert.equal(await presenceOf(), 'online');
      fixture.rooms.clock.advance(10 * second);
      fixture.sync(alice, 'unavailable');
      assert.equal(await presenceOf(), 'unavailable');
      await fixture.presence.stop();
    });
  });
});
