import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { PlacedReceipt } from './receipt.ts';
import { RecentReceipts } from './recent-receipts.ts';

const receipt = (roomId: string, position: number): PlacedReceipt => ({
  roomId,
  userId: '@a:test',
  type: 'm.read',
  threadId: undefined,
  eventId: '$e',
  stream: position,
  ts: 0,
  position,
});

describe('recent receipts', () => {
  it('are all there, or it is said that they are not', () => {
    const rooms = fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 3000, size: 'max' });
    fc.assert(
      fc.property(rooms, fc.nat(3000), fc.nat(3000), (given, after, upTo) => {
        const recent = new RecentReceipts(10);
        const all = given.map((room, index) => receipt(`!${room}`, index + 11));
        for (const one of all) recent.add(one);
        for (const roomId of ['!0', '!1', '!never']) {
          const found = recent.between(roomId, after, upTo);
          if (!found) continue;
          const expected = all
            .filter((one) => one.roomId === roomId && one.position > after && one.position <= upTo)
            .reverse();
          assert.deepEqual(found, expected);
        }
      }),
      { numRuns: 50 },
    );
  });

  it('are bounded, the newest are kept', () => {
    const recent = new RecentReceipts(0);
    for (let position = 1; position <= 5000; position++) recent.add(receipt('!room', position));
    assert.equal(recent.between('!room', 0, 5000), undefined);
    assert.equal(recent.between('!room', 4900, 5000)?.length, 100);
    for (let room = 0; room < 10_000; room++) recent.add(receipt(`!${room}`, 5001 + room));
    assert.equal(recent.between('!room', 4900, 5000), undefined);
    assert.deepEqual(recent.between('!unheard', 20_000, 30_000), []);
  });

  it('do not reach back to before the beginning', () => {
    const recent = new RecentReceipts(10);
    assert.equal(recent.between('!room', 9, 10), undefined);
    assert.deepEqual(recent.between('!room', 10, 10), []);
  });
});
