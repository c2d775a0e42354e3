import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { joinWithoutMembers } from '../../../test/support/rooms/partial-room.ts';
import { alice, RoomsUnderTest } from '../../../test/support/rooms/rooms.ts';
import { MatrixError } from '../../protocol/index.ts';
import { FollowedCompletion } from './followed-completion.ts';
import { StateReader } from './state-reader.ts';

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Opens readers of the members of a room that alice has joined without its members, in both kinds of processes. */
const readers = {
  'the process that completes the state': ({ rooms }: RoomsUnderTest, roomId: string) => {
    rooms.completion.begin(roomId);
    return rooms.stateReader;
  },
  'a process that reads': ({ engine, rooms }: RoomsUnderTest) =>
    new StateReader(engine, rooms.clientEvents, new FollowedCompletion(engine)),
};

forSelectedDatabases(import.meta.url, (open) => {
  describe('a request for the members of a room that was joined without its members', () => {
    const waiting = async (openReader: (typeof readers)[keyof typeof readers]) => {
      const fixture = await RoomsUnderTest.open(open);
      const { room, complete } = await joinWithoutMembers(fixture, alice);
      const reader = openReader(fixture, room.roomId);
      const request = new AbortController();
      let isOver = false;
      const answer = reader.joinedMembers(alice, room.roomId, request).finally(() => {
        isOver = true;
      });
      answer.catch(() => undefined);
      for (let turns = 0; turns < 20; turns++) await turn();
      assert.equal(isOver, false);
      return { fixture, room, complete, request, answer };
    };

    for (const [process, openReader] of Object.entries(readers)) {
      it(`ends with 503 in ${process} when the client disconnects`, async () => {
        const { fixture, request, answer } = await waiting(openReader);
        request.abort();
        await assert.rejects(answer, (error) => error instanceof MatrixError && error.status === 503);
        await fixture.rooms.completion.close();
      });

      it(`ends with M_FORBIDDEN in ${process} when the user leaves`, async () => {
        const { fixture, room, answer } = await waiting(openReader);
        await fixture.engine.timeline.append(room.roomId, {
          type: 'm.room.member',
          stateKey: alice,
          sender: alice,
          content: { membership: 'leave' },
        });
        await assert.rejects(answer, (error) => error instanceof MatrixError && error.status === 403);
        await fixture.rooms.completion.close();
      });
    }

    it('is answered with all members in a process that reads as soon as these are known', async () => {
      const { complete, answer } = await waiting(readers['a process that reads']);
      await complete();
      assert.equal(Object.keys(await answer).length, 8);
    });
  });
});
