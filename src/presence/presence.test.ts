import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { eventually } from '../../test/clients/eventually.ts';
import { forSelectedDatabases } from '../../test/support/databases/databases.ts';
import { alice, bob, carol } from '../../test/support/rooms/rooms.ts';
import { PresenceUnderTest } from './test/presence-under-test.ts';

const second = 1_000;
const minute = 60 * second;

forSelectedDatabases(import.meta.url, (open) => {
  describe('Presence and PresenceEvents', () => {
    it('sends the presence of a user to the user and to users who share a room', async () => {
      const fixture = await PresenceUnderTest.open(open);
      await fixture.rooms.room(alice, bob);
      await fixture.rooms.room(carol);
      const before = fixture.position;
      fixture.sync(alice);
      await fixture.pass(second);
      assert.deepEqual(await fixture.presenceEvents(bob, before), { [alice]: 'online' });
      assert.deepEqual(await fixture.presenceEvents(alice, before), { [alice]: 'online' });
      assert.deepEqual(await fixture.presenceEvents(carol, before), {});
      assert.deepEqual(await fixture.presenceEvents(bob, fixture.position), {});
      assert.deepEqual(await fixture.presenceEvents(bob, undefined), { [alice]: 'online' });
      assert.deepEqual(await fixture.presenceEvents(carol, undefined), {});
      await assert.rejects(fixture.presence.get(carol, alice), { errcode: 'M_FORBIDDEN' });
      const status = await fixture.presence.get(bob, alice);
      assert.deepEqual([status.presence, status.currentlyActive], ['online', true]);
    });

    it('sends the presence of offline members once to a user who joins their room, and the presence of that user to the members', async () => {
      const fixture = await PresenceUnderTest.open(open);
      const room = await fixture.rooms.room(alice, bob);
      const before = fixture.position;
      await fixture.rooms.join(carol, room);
      for (const viewer of [alice, bob]) {
        assert.deepEqual(await fixture.presenceEvents(viewer, before), { [carol]: 'offline' });
        assert.deepEqual(await fixture.presenceEvents(viewer, fixture.position), {});
      }
      assert.deepEqual(await fixture.presenceEvents(carol, before), { [alice]: 'offline', [bob]: 'offline' });
      assert.deepEqual(await fixture.presenceEvents(carol, fixture.position), {});
    });

    it('makes a user offline 30 seconds after the end of the last sync', async () => {
      const fixture = await PresenceUnderTest.open(open);
      await fixture.rooms.room(alice, bob);
      const end = fixture.sync(alice);
      await fixture.pass(40 * second);
      end();
      const before = fixture.position;
      await fixture.pass(29 * second);
      assert.equal((await fixture.presence.get(bob, alice)).presence, 'online');
      await fixture.pass(second);
      assert.equal((await fixture.presence.get(bob, alice)).presence, 'offline');
      await fixture.pass(30 * second);
      assert.deepEqual(await fixture.presenceEvents(bob, before), { [alice]: 'offline' });
      assert.equal(fixture.presence.usersNotOffline.size, 0);
      await fixture.presence.stop();
      const status = await fixture.presence.get(bob, alice);
      assert.deepEqual([status.presence, status.lastActive > 0], ['offline', true]);
    });

    it('makes a syncing user unavailable without activity, and online again when the user sends a message', async () => {
      const fixture = await PresenceUnderTest.open(open);
      const roomId = await fixture.rooms.room(alice, bob);
      fixture.sync(alice);
      await fixture.pass(2 * minute);
      const before = fixture.position;
      await fixture.pass(4 * minute);
      assert.deepEqual(await fixture.presenceEvents(bob, before), { [alice]: 'unavailable' });
      const idle = fixture.position;
      await fixture.rooms.say(alice, roomId, 'I am back');
      await fixture.pass(minute / 2);
      assert.deepEqual(await fixture.presenceEvents(bob, idle), { [alice]: 'online' });
    });

    it('stores a presence that the user sets, with a status message that survives restarts', async () => {
      const fixture = await PresenceUnderTest.open(open);
      await fixture.rooms.room(alice, bob);
      const device = { userId: alice, deviceId: 'D' };
      fixture.presence.set(device, 'unavailable', 'Out for lunch');
      const status = await fixture.presence.get(bob, alice);
      assert.deepEqual([status.presence, status.statusMsg], ['unavailable', 'Out for lunch']);
      const restarted = await fixture.restart(open);
      assert.deepEqual(await restarted.presenceEvents(bob, undefined), { [alice]: 'unavailable' });
      await restarted.pass(31 * second);
      assert.equal((await restarted.presence.get(bob, alice)).presence, 'offline');
      const third = await restarted.restart(open);
      assert.deepEqual(await third.presenceEvents(bob, undefined), {});
      assert.equal((await third.presence.get(bob, alice)).statusMsg, 'Out for lunch');
      third.sync(alice);
      const back = await eventually('the status message from before the restart', async () => {
        const known = await third.presence.get(bob, alice);
        return known.statusMsg !== undefined && known;
      });
      assert.deepEqual([back.presence, back.statusMsg], ['online', 'Out for lunch']);
      third.presence.set(device, 'online', undefined);
      assert.equal((await third.presence.get(bob, alice)).statusMsg, undefined);
      await third.presence.stop();
    });

    it('exchanges the presence of a joining user and of the members of the room', async () => {
      const fixture = await PresenceUnderTest.open(open);
      const roomId = await fixture.rooms.room(alice);
      fixture.sync(alice);
      fixture.sync(carol);
      await fixture.pass(second);
      const before = fixture.position;
      await fixture.rooms.join(carol, roomId);
      assert.deepEqual(await fixture.presenceEvents(carol, before), { [alice]: 'online', [carol]: 'online' });
      await fixture.pass(minute / 2);
      assert.deepEqual(await fixture.presenceEvents(alice, before), { [carol]: 'online' });
      const leftAt = fixture.position;
      await fixture.rooms.leave(carol, roomId);
      fixture.presence.set({ userId: alice, deviceId: 'D' }, 'online', 'secret');
      await fixture.pass(minute / 2);
      assert.deepEqual(await fixture.presenceEvents(carol, leftAt), {});
    });

    it('makes neither queries nor writes while users sync', async () => {
      const fixture = await PresenceUnderTest.open(open);
      await fixture.rooms.room(alice, bob);
      const { reads } = fixture.rooms.database.statistics;
      fixture.sync(alice)();
      // The first sync reads the stored presence of Alice.
      await eventually(
        'the query for the stored presence',
        () => fixture.rooms.database.statistics.reads > reads,
      );
      await fixture.pass(second);
      await fixture.presenceEvents(bob, fixture.position);
      const before = JSON.stringify(fixture.rooms.database.statistics);
      for (let count = 0; count < 100; count++) {
        fixture.sync(alice)();
        fixture.rooms.clock.advance(100);
      }
      await fixture.presenceEvents(bob, fixture.position);
      assert.equal(JSON.stringify(fixture.rooms.database.statistics), before);
    });

    it('announces changes together, and less often the more users receive them', async () => {
      const fixture = await PresenceUnderTest.open(open);
      const users = Array.from({ length: 50 }, (_, index) => `@user${index}:test`);
      await fixture.rooms.room(alice, ...users);
      let announced = 0;
      fixture.presence.presenceStream.subscribe(() => announced++);
      for (const userId of users) fixture.sync(userId);
      await fixture.pass(second);
      assert.equal(announced, 1);
      fixture.presence.set({ userId: alice, deviceId: 'D' }, 'online', 'hello');
      await fixture.pass(second / 2);
      assert.equal(announced, 1, '50 changes for 51 members are enough for more than a second');
      await fixture.pass(second);
      assert.equal(announced, 2);
    });

    it('keeps the presence of remote users for 30 minutes, and keeps none when presence is untracked', async () => {
      const status = { presence: 'online', statusMsg: 'far', lastActive: 5, currentlyActive: true } as const;
      const dora = '@dora:far';
      const fixture = await PresenceUnderTest.open(open);
      await fixture.rooms.room(alice, dora);
      fixture.presence.report(dora, status);
      assert.deepEqual(await fixture.presenceEvents(alice, undefined), { [dora]: 'online' });
      await fixture.pass(30 * minute);
      assert.equal((await fixture.presence.get(alice, dora)).presence, 'offline');
      const untracked = await PresenceUnderTest.open(open, { enabled: 'untracked' });
      await untracked.rooms.room(alice, dora);
      untracked.presence.report(dora, status);
      assert.deepEqual(await untracked.presenceEvents(alice, undefined), {});
    });

    it('stores the presence of remote users only after they have begun to share a room with a local user', async () => {
      const status = { presence: 'online', statusMsg: 'far', lastActive: 5, currentlyActive: true } as const;
      const [dora, eve] = ['@dora:far', '@eve:far'];
      const fixture = await PresenceUnderTest.open(open);
      fixture.presence.report(dora, status, false);
      fixture.presence.report(eve, status, false);
      assert.deepEqual(
        [dora, eve].map((userId) => fixture.presence.peek(userId)?.presence),
        ['online', 'online'],
      );
      fixture.presence.report(eve, { ...status, statusMsg: 'near' }, true);
      await fixture.pass(minute);
      await fixture.presence.stop();
      assert.deepEqual([...(await fixture.presence.lastKnown([dora, eve])).keys()], [eve]);
    });

    it('keeps the presence of at most 10,000 users of one remote server who share no room with a local user', async () => {
      const status = {
        presence: 'online',
        statusMsg: undefined,
        lastActive: 5,
        currentlyActive: true,
      } as const;
      const fixture = await PresenceUnderTest.open(open);
      for (let n = 0; n < 10_010; n++) fixture.presence.report(`@u${n}:evil`, status, false);
      assert.equal(fixture.presence.usersNotOffline.size, 10_000);
      fixture.presence.report('@shared:evil', status, true);
      assert.equal(fixture.presence.usersNotOffline.size, 10_001);
      await fixture.pass(30 * minute);
      assert.equal(fixture.presence.usersNotOffline.size, 0);
      fixture.presence.report('@u0:evil', status, false);
      assert.equal(fixture.presence.usersNotOffline.size, 1);
      await fixture.presence.stop();
    });

    it('does not send the presence of ignored users', async () => {
      const fixture = await PresenceUnderTest.open(open);
      await fixture.rooms.room(alice, bob, carol);
      const before = fixture.position;
      fixture.sync(alice);
      fixture.sync(carol);
      fixture.ignored.add(alice);
      await fixture.pass(second);
      assert.deepEqual(await fixture.presenceEvents(bob, before), { [carol]: 'online' });
      assert.deepEqual(await fixture.presenceEvents(bob, undefined), { [carol]: 'online' });
      await fixture.presence.stop();
    });

    it('removes presence and status message of a closed account', async () => {
      const fixture = await PresenceUnderTest.open(open);
      await fixture.rooms.room(alice, bob);
      fixture.presence.set({ userId: alice, deviceId: 'D' }, 'online', 'My secret');
      await fixture.pass(second);
      const before = fixture.position;
      fixture.presence.forget(alice);
      await fixture.pass(minute);
      assert.deepEqual(await fixture.presenceEvents(bob, before), { [alice]: 'offline' });
      await fixture.presence.stop();
      assert.deepEqual(await fixture.presence.get(bob, alice), {
        presence: 'offline',
        statusMsg: undefined,
        lastActive: 0,
        currentlyActive: false,
      });
    });

    it('does not send presence in rooms with more than 1,000 joined members', async () => {
      const fixture = await PresenceUnderTest.open(open);
      const roomId = await fixture.rooms.room(alice, bob);
      const join = (index: number) => fixture.rooms.join(`@user${index}:test`, roomId);
      await Promise.all(Array.from({ length: 998 }, (_, index) => join(index)));
      const before = fixture.position;
      fixture.sync(alice);
      await fixture.pass(second);
      assert.deepEqual(await fixture.presenceEvents(bob, before), { [alice]: 'online' });
      await join(998);
      assert.deepEqual(await fixture.presenceEvents(bob, undefined), {});
      const full = fixture.position;
      fixture.presence.set({ userId: alice, deviceId: 'D' }, 'unavailable', undefined);
      await fixture.pass(minute);
      assert.deepEqual(await fixture.presenceEvents(bob, full), {});
      assert.equal((await fixture.presence.get(bob, alice)).presence, 'unavailable');
      await fixture.presence.stop();
    });

    it('after a restart, syncs with older tokens contain the presence that was stored before the restart', async () => {
      const fixture = await PresenceUnderTest.open(open);
      await fixture.rooms.room(alice, bob);
      const before = fixture.position;
      fixture.sync(alice);
      await fixture.pass(second);
      const restarted = await fixture.restart(open);
      assert.deepEqual(await restarted.presenceEvents(bob, before), { [alice]: 'online' });
      await restarted.presence.stop();
    });

    it('after a restart, syncs with older tokens show that a user went offline before the restart', async () => {
      const fixture = await PresenceUnderTest.open(open);
      const roomId = await fixture.rooms.room(alice, bob);
      await fixture.rooms.join('@never-present:test', roomId);
      const endSync = fixture.sync(alice);
      await fixture.pass(second);
      const whenOnline = fixture.position;
      endSync();
      await fixture.pass(minute);
      assert.deepEqual(await fixture.presenceEvents(bob, whenOnline), { [alice]: 'offline' });
      const restarted = await fixture.restart(open);
      assert.deepEqual(await restarted.presenceEvents(bob, whenOnline), { [alice]: 'offline' });
      await restarted.presence.stop();
    });
  });
});
