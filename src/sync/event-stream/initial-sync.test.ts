import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { UserRoom } from '../../room-engine/index.ts';
import { InitialSync, type InitialSyncDeps } from './initial-sync.ts';
import { RoomInfos, type RoomInfosDeps } from './room-info.ts';

const users = ['@alice:test', '@bob:test', '@carol:test'];

it('GET /initialSync reads the presence of all rooms once, and shows in each room the presence of its members', async () => {
  const rooms = Array.from({ length: 30 }, (_, roomNid): [string, UserRoom] => [
    `!${roomNid}`,
    { roomId: `!${roomNid}`, roomNid, membership: 'join', eventNid: 1, stream: 1, forgotten: false },
  ]);
  const members = (roomId: string) =>
    new Map(users.slice(roomId === '!0' ? 1 : 0).map((user) => [user, 'join']));
  const engine = {
    userRooms: {
      of: async () => new Map(rooms),
      withMembership: async () => rooms.map(([roomId]) => roomId),
    },
    heads: { get: async (roomId: string) => ({ members: members(roomId) }) },
  };
  let presenceReads = 0;
  const otherEvents = {
    presence: async () => {
      presenceReads++;
      return users.map((sender) => ({ type: 'm.presence', sender, content: {} }));
    },
    receipts: async () => [],
  };
  const reading = {
    engine,
    historyReader: { messages: async () => ({ start: 's', chunk: [] }) },
    stateReader: { all: async () => [] },
    published: { isPublished: async () => false },
  };
  const roomInfos = new RoomInfos({ rooms: reading, otherEvents } as unknown as RoomInfosDeps);
  const initialSync = new InitialSync({
    engine,
    streams: { current: 1 },
    roomInfos,
    otherEvents,
    sources: { accountData: [] },
    excludedRooms: new Set(),
  } as unknown as InitialSyncDeps);
  const viewer = { userId: '@alice:test', deviceId: undefined };
  const { signal } = new AbortController();
  let turns = 0;
  const nextTurn = () => {
    turns++;
    setImmediate(nextTurn).unref();
  };
  setImmediate(nextTurn).unref();
  const state = await initialSync.all(viewer, { limit: 1, archived: false }, { signal });
  assert.equal(presenceReads, 1);
  assert.ok(turns >= 3, `${turns} turns of the event loop`);
  assert.equal(state.presence.length, 3);
  const shown = state.rooms.map((room) => ('presence' in room ? room.presence.length : undefined));
  assert.deepEqual(shown, [2, ...Array(29).fill(3)]);
});
