import assert from 'node:assert/strict';
import type { TestServer } from '../../../../test/support/servers/server.ts';
import { type JoinedRoomJson, TestClient } from '../../../../test/support/users/test-client.ts';

/** Returns the bodies of the messages in a timeline. */
export const texts = (room: Pick<JoinedRoomJson, 'timeline'> | undefined) =>
  room?.timeline.events.map(({ content }) => content['body']).filter((body) => body !== undefined);

/** Returns the users of the membership events, sorted. */
export const membersIn = (events: readonly { type: string; state_key?: string }[] = []) =>
  events
    .filter(({ type }) => type === 'm.room.member')
    .map(({ state_key }) => state_key)
    .sort();

/**
 * Returns a function that registers users, creates a public room of the first user and lets all users join it. The
 * function returns the first three users and the id of the room; when there are only two users, `cleo` is also Ben.
 */
export function usersInRoomOn(server: () => TestServer) {
  let names = 0;
  return async (count: number) => {
    const users = await Promise.all(
      Array.from({ length: count }, () => TestClient.register(server(), `user${names++}`)),
    );
    const [anna, ben, cleo] = users;
    assert.ok(anna && ben);
    const roomId = await anna.createRoom();
    for (const user of users.slice(1)) await user.join(roomId);
    return { anna, ben, cleo: cleo ?? ben, roomId };
  };
}
