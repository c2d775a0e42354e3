import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { eventually } from '../../../test/clients/eventually.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { alice, bob, RoomsUnderTest } from '../../../test/support/rooms/rooms.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import { MatrixError } from '../../protocol/index.ts';
import { SettingsTransfer } from './settings-transfer.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('SettingsTransfer', () => {
    it('copies the settings of the user who upgrades a room, who joins the new room before the tombstone, also after settings of another user were refused', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const transferred: string[] = [];
      const refused = new Set<string>();
      const transfer = async (...names: [userId: string, from: string, to: string]) => {
        const [userId] = names;
        if (userId === bob && refused.size === 0) {
          refused.add(userId);
          throw new MatrixError(400, 'M_TOO_LARGE', 'There are too many push rules');
        }
        transferred.push(names.join(' '));
      };
      const moved: string[] = [];
      const moveListing = async (from: string, to: string) => void moved.push(`${from} ${to}`);
      const following = new SettingsTransfer({
        ...fixture,
        log: silentLogger,
        serverName: 'test',
        transfer,
        moveListing,
      });
      await following.start();
      const successor = (roomId: string) =>
        fixture.rooms.creation.create(alice, {
          preset: 'public_chat',
          creation_content: { predecessor: { room_id: roomId, event_id: '$last' } },
        });
      const sendTombstone = (roomId: string, next: string) =>
        fixture.engine.timeline.append(roomId, {
          type: 'm.room.tombstone',
          stateKey: '',
          sender: alice,
          content: { replacement_room: next },
        });
      const [old, other] = [await fixture.room(alice, bob), await fixture.room(alice, bob)];
      const [next, otherNext] = [await successor(old), await successor(other)];
      await sendTombstone(other, otherNext);
      await fixture.join(bob, otherNext);
      await eventually('the refused settings', () => refused.size > 0);
      await fixture.leave(bob, otherNext);
      await fixture.join(bob, otherNext);
      await eventually('the transfer of the earlier upgrade', () =>
        transferred.includes([bob, other, otherNext].join(' ')),
      );
      assert.ok(!transferred.includes([alice, old, next].join(' ')));
      await sendTombstone(old, next);
      await eventually('the settings', () => transferred.includes([alice, old, next].join(' ')));
      await following.stop();
      assert.deepEqual([...new Set(moved)].sort(), [`${old} ${next}`, `${other} ${otherNext}`].sort());
    });
  });
});
