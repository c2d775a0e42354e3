import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forEachDatabase } from '../../../../test/support/databases/databases.ts';
import { RemotePeers } from '../../../../test/support/rooms/remote-peers.ts';
import { RemoteRoom } from '../../../../test/support/rooms/remote-room.ts';
import { alice, RoomsUnderTest } from '../../../../test/support/rooms/rooms.ts';
import { silentLogger } from '../../../kernel/observability/index.ts';
import { StateCompletion } from './state-completion.ts';

const minute = 60_000;

forEachDatabase((open) => {
  describe('the state of a room that was joined without its members', () => {
    /** A room with `lost` members of a server whose keys can not be had until `return` is called. */
    async function joined(lost: number) {
      const room = new RemoteRoom('@creator:a.example');
      for (let index = 0; index < 20; index++) room.join(`@user${index}:b.example`);
      for (let index = 0; index < lost; index++) room.join(`@user${index}:gone.example`);
      const key = room.key('gone.example');
      room.keys.delete('gone.example');
      const under = await RoomsUnderTest.open(open, [], { otherServers: new RemotePeers(room) });
      const join = room.join(alice);
      const verified = (ids: Iterable<string>) => [...ids].map((id) => room.get(id));
      const state = [...room.get(join).stateBefore.values()].filter(
        (id) => room.get(id).event.type !== 'm.room.member',
      );
      await under.engine.placement.enter(
        { roomId: room.roomId, version: room.version },
        {
          event: room.get(join),
          state: verified(state),
          authChain: verified(room.authChain([join, ...state])),
          partial: { servers: ['a.example', 'b.example'], from: 'a.example' },
        },
      );
      const pauses: number[] = [];
      /** Completes the state, with time that passes as soon as something waits for it. */
      const complete = async (onPause: () => void = () => undefined) => {
        const clock = {
          ...under.clock,
          setTimer(delay: number, callback: () => void) {
            pauses.push(delay);
            onPause();
            if (pauses.length < 100)
              setImmediate(() => {
                under.clock.advance(delay);
                callback();
              });
            return { cancel: () => undefined };
          },
        };
        const completion = new StateCompletion({
          engine: under.engine,
          incoming: under.rooms.incoming,
          serverName: 'test',
          clock,
          log: silentLogger,
        });
        completion.begin(room.roomId);
        await completion.whole(room.roomId);
        const head = await under.engine.heads.get(room.roomId);
        return { isPartial: head?.isPartial, members: head?.memberCount('join') };
      };
      const waited = () => pauses.reduce((sum, pause) => sum + pause, 0);
      return { complete, pauses, waited, return: () => room.keys.set('gone.example', key) };
    }

    it('is whole when all of it can be had', async () => {
      const test = await joined(0);
      assert.deepEqual(await test.complete(), { isPartial: false, members: 22 });
      assert.deepEqual(test.pauses, []);
    });

    it('waits for keys that can not be had for a moment', async () => {
      const test = await joined(2);
      const completed = await test.complete(() => {
        if (test.pauses.length === 3) test.return();
      });
      assert.deepEqual(completed, { isPartial: false, members: 24 });
      assert.equal(test.pauses.length, 3);
    });

    it('does without the members of a server that is gone, after some minutes', async () => {
      const test = await joined(2);
      assert.deepEqual(await test.complete(), { isPartial: false, members: 22 });
      assert.ok(test.waited() > 5 * minute && test.waited() < 15 * minute, `${test.waited()}`);
    });

    it('does without many members whose servers are gone, after some hours', async () => {
      const test = await joined(15);
      assert.deepEqual(await test.complete(), { isPartial: false, members: 22 });
      assert.ok(test.waited() > 60 * minute && test.waited() < 240 * minute, `${test.waited()}`);
    });
  });
});
