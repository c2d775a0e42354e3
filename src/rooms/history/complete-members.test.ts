import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { joinWithoutMembers } from '../../../test/support/rooms/partial-room.ts';
import { alice, RoomsUnderTest } from '../../../test/support/rooms/rooms.ts';
import { MatrixError } from '../../protocol/index.ts';
import { FollowedCompletion } from './followed-completion.ts';
import { StateReader } from './state-reader.ts';

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Functions that return a reader of the members of a room with partial state, by kind of process. */
const readers = {
  'the process that completes the state': ({ rooms }: RoomsUnderTest, roomId: string) => {
    rooms.completion.begin(roomId);
    return rooms.stateReader;
  },
  'a process that reads': ({ engine, rooms, caches, clock }: RoomsUnderTest) =>
    new StateReader({
      engine,
      clientEvents: rooms.clientEvents,
      completion: new FollowedCompletion(engine),
      caches,
      clock,
    }),
};

forSelectedDatabases(import.meta.url, (open) => {
  describe('a request for the members of a room that was joined without its members', () => {
    const openWaitingRequest = async (openReader: (typeof readers)[keyof typeof readers]) => {
      const fixture = await RoomsUnderTest.open(open);
      const { room, complete } = await joinWithoutMembers(fixture, alice);
      const reader = openReader(fixture, room.roomId);
      const request = new AbortController();
      let isOver = false;
      const answer = reader.joinedMembersAsText(alice, room.roomId, request).finally(() => {
        isOver = true;
      });
      answer.catch(() => undefined);
      for (let turns = 0; turns < 20; turns++) await nextTurn();
      assert.equal(isOver, false);
      return { fixture, room, complete, request, answer };
    };

    for (const [process, openReader] of Object.entries(readers)) {
      it(`ends with 503 in ${process} when the client disconnects`, async () => {
        const { fixture, request, answer } = await openWaitingRequest(openReader);
        request.abort();
        await assert.rejects(answer, (error) => error instanceof MatrixError && error.status === 503);
        await fixture.rooms.completion.close();
      });

      it(`ends with M_FORBIDDEN in ${process} when the user leaves`, async () => {
        const { fixture, room, answer } = await openWaitingRequest(openReader);
        await fixture.engine.timeline.append(room.roomId, {
          type: 'm.room.member',
          stateKey: alice,
          sender: alice,
          content: { membership: 'leave' },
        });
        await assert.rejects(answer, { status: 403, errcode: 'M_FORBIDDEN' });
        await fixture.rooms.completion.close();
      });
    }

    it('returns all members as soon as they are known, in a process that only reads', async () => {
      const { complete, answer } = await openWaitingRequest(readers['a process that reads']);
      await complete();
      const { joined } = JSON.parse(String(await answer)) as { readonly joined: object };
      // The members are alice, the five omitted members, and the two users who made the room.
      assert.equal(Object.keys(joined).length, 8);
    });
  });
});
