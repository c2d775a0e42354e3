import assert from 'node:assert/strict';
import { describe, it, mock } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { alice, bob, RoomsUnderTest } from '../../../test/support/rooms/rooms.ts';
import { stateMapKey } from '../../protocol/index.ts';

const childCount = 130;

forSelectedDatabases(import.meta.url, (open) => {
  describe('the upgrade of a room with many space children and a ban', () => {
    for (const new_version of ['11', '12']) {
      it(`to version ${new_version} creates the new room with at most 105 events, and then copies the others`, async () => {
        const fixture = await RoomsUnderTest.open(open);
        const { engine, rooms } = fixture;
        const requester = { userId: alice, deviceId: 'DEVICE', isAdmin: false, isGuest: false };
        const oldId = await rooms.creation.create(alice, { preset: 'public_chat', name: 'Old' });
        const child = (index: number) => ({ type: 'm.space.child', stateKey: `!${index}:test` });
        for (let index = 0; index < childCount; index++)
          await rooms.sending.state(requester, oldId, child(index), { via: ['test'] });
        await rooms.memberships.ban(alice, oldId, bob);
        const create = mock.method(engine.timeline, 'create');
        const newId = await rooms.upgrades.upgrade(requester as never, oldId, { new_version });
        const drafts = create.mock.calls[0]?.arguments[2] ?? [];
        assert.ok(drafts.length <= 105, `${drafts.length} events`);
        const head = await engine.heads.get(newId);
        assert.equal(head?.membership(bob), 'ban');
        const children = [...head!.state.keys()].filter((key) =>
          key.startsWith(stateMapKey('m.space.child', '')),
        );
        assert.equal(children.length, childCount);
        const levels = await engine.events.get(head!.entry('m.room.power_levels', '')!.nid);
        const old = await engine.heads.get(oldId);
        assert.ok(old?.entry('m.room.tombstone', ''));
        assert.notEqual(levels?.event.content['users'], undefined);
        assert.ok(head!.entry('m.room.name', ''));
        mock.restoreAll();
      });
    }
  });
});
