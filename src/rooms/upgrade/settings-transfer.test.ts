import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { eventually } from '../../../test/clients/eventually.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { alice, bob, RoomsUnderTest } from '../../../test/support/rooms/rooms.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import { MatrixError } from '../../protocol/index.ts';
import { SettingsTransfer } from './settings-transfer.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('copying settings to the replacement of a room (SettingsTransfer)', () => {
    it('copies settings when a user joins and, for the user who upgraded the room, when the tombstone arrives, also after a transfer failed with M_TOO_LARGE, and moves the directory listing of the room', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const transferred: string[] = [];
      let hasFailed = false;
      const transfer = async (userId: string, from: string, to: string) => {
        if (userId === bob && !hasFailed) {
          hasFailed = true;
          throw new MatrixError(400, 'M_TOO_LARGE', 'There are too many push rules');
        }
        transferred.push([userId, from, to].join(' '));
      };
      const movedListings: string[] = [];
      const moveListing = async (from: string, to: string) => void movedListings.push(`${from} ${to}`);
      const settingsTransfer = new SettingsTransfer({
        ...fixture,
        log: silentLogger,
        serverName: 'test',
        transfer,
        moveListing,
      });
      await settingsTransfer.start();
      const createSuccessor = (roomId: string) =>
        fixture.rooms.creation.create(alice, {
          preset: 'public_chat',
          creation_content: { predecessor: { room_id: roomId, event_id: '$last' } },
        });
      const sendTombstone = (roomId: string, newRoom: string) =>
        fixture.engine.timeline.append(roomId, {
          type: 'm.room.tombstone',
          stateKey: '',
          sender: alice,
          content: { replacement_room: newRoom },
        });
      const [oldRoom, otherOldRoom] = [await fixture.room(alice, bob), await fixture.room(alice, bob)];
      const [newRoom, otherNewRoom] = [await createSuccessor(oldRoom), await createSuccessor(otherOldRoom)];
      await sendTombstone(otherOldRoom, otherNewRoom);
      await fixture.join(bob, otherNewRoom);
      await eventually('the failed transfer for Bob', () => hasFailed);
      await fixture.leave(bob, otherNewRoom);
      await fixture.join(bob, otherNewRoom);
      await eventually('the transfer for Bob after his second join', () =>
        transferred.includes([bob, otherOldRoom, otherNewRoom].join(' ')),
      );
      assert.ok(!transferred.includes([alice, oldRoom, newRoom].join(' ')));
      await sendTombstone(oldRoom, newRoom);
      await eventually('the settings', () => transferred.includes([alice, oldRoom, newRoom].join(' ')));
      await settingsTransfer.stop();
      assert.deepEqual(
        [...new Set(movedListings)].sort(),
        [`${oldRoom} ${newRoom}`, `${otherOldRoom} ${otherNewRoom}`].sort(),
      );
    });
  });
});
