import assert from 'node:assert/strict';
import { it } from 'node:test';
import { noFilter } from '../../../filters/index.ts';
import type { UserRoom } from '../../../room-engine/index.ts';
import type { Recipient } from '../recipient.ts';
import { RoomEntries, type RoomEntriesDeps } from './room-entries.ts';

it('after 16 MiB of a sync, the timelines of further rooms have at most one event', async () => {
  const limits: number[] = [];
  const deps = {
    engine: { heads: { peek: () => ({ completedAt: 0, isPartial: false }) } },
    sources: { ephemeral: [], accountData: [] },
    joinedRooms: {
      render: (_head: unknown, { timelineLimit }: Recipient) => {
        limits.push(timelineLimit);
        return JSON.stringify('x'.repeat(1_100_000));
      },
    },
    excludedRooms: new Set(),
  };
  const entries = new RoomEntries(deps as unknown as RoomEntriesDeps);
  const rooms = Array.from(
    { length: 40 },
    (_, roomNid): UserRoom => ({
      roomId: `!${roomNid}:test`,
      roomNid,
      membership: 'join',
      eventNid: 1,
      stream: 1,
      forgotten: false,
    }),
  );
  const recipient = {
    userId: '@alice:test',
    deviceId: 'D',
    filter: noFilter,
    timelineLimit: 20,
    stateAfter: undefined,
  };
  const range = { since: undefined, upTo: 5, changes: undefined, fullState: false };
  const { join } = await entries.render(recipient, rooms, range, []);
  assert.deepEqual(limits, [...Array(16).fill(20), ...Array(24).fill(1)]);
  assert.equal(Object.keys(JSON.parse(`{${String(join.finish())}}`) as object).length, 40);
});
