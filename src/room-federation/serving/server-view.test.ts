import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { RoomHead, RoomReader, StoredEvent } from '../../room-engine/index.ts';
import { ServerView } from './server-view.ts';

const visibilityNid = 1;
const memberCount = 400;
const groupCount = 100;
const userOf = (index: number) => `@user${index}:far.example`;

/**
 * Opens the view of a server with many users in a room. Members of the room see what was sent while they were joined.
 * @param isJoinedIn whether a user was joined in the state of a group, by the indexes of user and group
 */
function openView(isJoinedIn: (user: number, group: number) => boolean) {
  const count = { loadedStates: 0, readEvents: 0 };
  const joinNid = 10;
  const leaveNid = 11;
  const contents = new Map<number, object>([
    [visibilityNid, { history_visibility: 'joined' }],
    [joinNid, { membership: 'join' }],
    [leaveNid, { membership: 'leave' }],
  ]);
  const keyOfUser = (index: number) => 1_000 + index;
  const entry = (group: number, key: number) =>
    key === visibilityNid ? visibilityNid : isJoinedIn(key - 1_000, group) ? joinNid : leaveNid;
  const engine = {
    stateKeys: {
      find: async () => visibilityNid,
      findMany: async (keys: Iterable<string>) =>
        new Map([...keys].map((key) => [key, keyOfUser(Number(/@user(\d+):/.exec(key)?.[1]))])),
    },
    groups: {
      entries: async (groups: Iterable<number>, keys: readonly number[]) =>
        new Map([...groups].map((group) => [group, new Map(keys.map((key) => [key, entry(group, key)]))])),
      load: async (group: number) => {
        count.loadedStates++;
        const keys = [visibilityNid, ...Array.from({ length: memberCount }, (_, index) => keyOfUser(index))];
        return new Map(keys.map((key) => [key, entry(group, key)]));
      },
    },
    events: {
      getMany: async (nids: Iterable<number>) => {
        const read = [...new Set(nids)];
        count.readEvents += read.length;
        return new Map(read.map((nid) => [nid, { nid, event: { content: contents.get(nid) } }]));
      },
    },
    erased: { positions: async () => new Map() },
    retention: { expiredBefore: async () => 0 },
  } as unknown as RoomReader;
  const members = new Map(Array.from({ length: memberCount }, (_, index) => [userOf(index), 'join']));
  const head = { members, state: members } as unknown as RoomHead;
  const events = Array.from(
    { length: groupCount },
    (_, group) =>
      ({
        nid: 100_000 + group,
        stateBefore: group,
        event: { type: 'm.room.message', sender: '@a:test', content: {}, originServerTs: 1 },
      }) as unknown as StoredEvent,
  );
  const view = new ServerView(engine, head, 'far.example');
  const hiddenGroups = async () => [...(await view.hidden(events))].map((nid) => nid - 100_000);
  return { hiddenGroups, count };
}

describe('what a server with many users may see of the history of a room (ServerView)', () => {
  it('is decided without reading whole states, when one of a few looked-up users was joined', async () => {
    const { hiddenGroups, count } = openView((user) => user === 20);
    assert.deepEqual(await hiddenGroups(), []);
    assert.equal(count.loadedStates, 0);
  });

  it('is decided by reading one whole state, when another user was joined in all states', async () => {
    const { hiddenGroups, count } = openView((user) => user === 350);
    assert.deepEqual(await hiddenGroups(), []);
    assert.equal(count.loadedStates, 1);
  });

  it('does not include events from before any user of the server had joined, and is decided by at most ten whole states', async () => {
    const { hiddenGroups, count } = openView((user, group) => user === 20 && group >= 50);
    assert.deepEqual(
      await hiddenGroups(),
      Array.from({ length: 50 }, (_, group) => group),
    );
    assert.ok(count.loadedStates <= 10, `${count.loadedStates} states`);
  });
});
