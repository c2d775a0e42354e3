import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { eventually } from '../../../test/clients/eventually.ts';
import { forEachDatabase } from '../../../test/support/databases/databases.ts';
import { alice, bob, RoomsUnderTest } from '../../../test/support/rooms/rooms.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import { SettingsTransfer } from './settings-transfer.ts';

forEachDatabase((open) => {
  describe('SettingsTransfer', () => {
    it('copies the settings of the upgrading user, who joins the new room before the tombstone', async () => {
      const under = await RoomsUnderTest.open(open);
      const transferred: string[] = [];
      const transfer = async (...names: [userId: string, from: string, to: string]) =>
        void transferred.push(names.join(' '));
      const moved: string[] = [];
      const moveListing = async (from: string, to: string) => void moved.push(`${from} ${to}`);
      const following = new SettingsTransfer({
        ...under,
        log: silentLogger,
        serverName: 'test',
        transfer,
        moveListing,
      });
      await following.start();
      const successor = (roomId: string) =>
        under.rooms.creation.create(alice, {
          preset: 'public_chat',
          creation_content: { predecessor: { room_id: roomId, event_id: '$last' } },
        });
      const bury = (roomId: string, next: string) =>
        under.engine.timeline.append(roomId, {
          type: 'm.room.tombstone',
          stateKey: '',
          sender: alice,
          content: { replacement_room: next },
        });
      const [old, other] = [await under.room(alice, bob), await under.room(alice, bob)];
      const [next, otherNext] = [await successor(old), await successor(other)];
      await bury(other, otherNext);
      await under.join(bob, otherNext);
      await eventually('all that was before', () => transferred.includes([bob, other, otherNext].join(' ')));
      assert.ok(!transferred.includes([alice, old, next].join(' ')));
      await bury(old, next);
      await eventually('the settings', () => transferred.includes([alice, old, next].join(' ')));
      await following.stop();
      assert.deepEqual([...new Set(moved)].sort(), [`${old} ${next}`, `${other} ${otherNext}`].sort());
    });
  });
});
