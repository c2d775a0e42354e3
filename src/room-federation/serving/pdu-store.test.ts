import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { alice, RoomsUnderTest } from '../../../test/support/rooms/rooms.ts';
import { PduStore } from './pdu-store.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('PDUs for other servers (PduStore)', () => {
    /** Reads 240 PDUs of messages with `length` characters. @returns the number of PDUs in each chunk */
    const chunkSizes = async (length: number) => {
      const fixture = await RoomsUnderTest.open(open);
      const roomId = await fixture.room(alice);
      const nids: number[] = [];
      for (let index = 0; index < 240; index++)
        nids.push(await fixture.positionOf(await fixture.say(alice, roomId, 'x'.repeat(length))));
      const sizes: number[] = [];
      for await (const jsons of new PduStore(fixture.database).read(nids)) sizes.push(jsons.length);
      return sizes;
    };

    it('are read in large chunks when they are short', async () => {
      assert.deepEqual(await chunkSizes(10), [100, 140]);
    });

    it('are read in chunks of about 2 MiB when they are long', async () => {
      const [first, ...others] = await chunkSizes(40_000);
      assert.equal(first, 100);
      assert.ok(Math.max(...others) <= 52, `${others}`);
      assert.equal(
        others.reduce((sum, size) => sum + size, 0),
        140,
      );
    });
  });
});
