import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { eventually } from '../../../../test/clients/eventually.ts';
import { forSelectedDatabases } from '../../../../test/support/databases/databases.ts';
import { FakeRemoteServers } from '../../../../test/support/rooms/fake-remote-servers.ts';
import { RemoteRoom } from '../../../../test/support/rooms/remote-room.ts';
import { alice, RoomsUnderTest } from '../../../../test/support/rooms/rooms.ts';
import { plainCaches } from '../../../../test/support/servers/caches.ts';
import { silentLogger } from '../../../kernel/observability/index.ts';
import { type JsonObject, MatrixError } from '../../../protocol/index.ts';
import { ServerAcls } from '../../../room-engine/index.ts';
import { StateCompletion } from './state-completion.ts';

const minute = 60_000;

forSelectedDatabases(import.meta.url, (open) => {
  describe('StateCompletion completes the state of rooms that were joined without their members', () => {
    /**
     * Opens a room that was joined without its members. It has `unverifiable` members of a server whose keys cannot be
     * fetched until `provideKeys` is called.
     */
    async function partiallyJoined(unverifiable: number) {
      const room = new RemoteRoom('@creator:a.example');
      for (let index = 0; index < 20; index++) room.join(`@user${index}:b.example`);
      for (let index = 0; index < unverifiable; index++) room.join(`@user${index}:gone.example`);
      const key = room.key('gone.example');
      room.keys.delete('gone.example');
      const peers = new FakeRemoteServers(room);
      const fixture = await RoomsUnderTest.open(open, [], { otherServers: peers });
      const join = room.join(alice);
      const verified = (ids: Iterable<string>) => [...ids].map((id) => room.get(id));
      const state = [...room.get(join).stateBefore.values()].filter(
        (id) => room.get(id).event.type !== 'm.room.member',
      );
      await fixture.engine.placement.enter(
        { roomId: room.roomId, version: room.version },
        {
          event: room.get(join),
          state: verified(state),
          authChain: verified(room.authChain([join, ...state])),
          partial: { servers: ['a.example', 'b.example'], from: 'a.example' },
        },
      );
      const serverAcls = new ServerAcls(fixture.engine.events, plainCaches(fixture.clock));
      const pauses: number[] = [];
      /** Completes the state, with a clock whose timers fire at once. */
      const complete = async (onPause: () => void = () => undefined) => {
        const clock = {
          ...fixture.clock,
          setTimer(delay: number, callback: () => void) {
            pauses.push(delay);
            onPause();
            if (pauses.length < 100)
              setImmediate(() => {
                fixture.clock.advance(delay);
                callback();
              });
            return { cancel: () => undefined };
          },
        };
        const completion = new StateCompletion({
          engine: fixture.engine,
          serverAcls,
          incoming: fixture.rooms.incoming,
          serverName: 'test',
          health: peers.health,
          clock,
          log: silentLogger,
        });
        completion.begin(room.roomId);
        await completion.whenComplete(room.roomId);
        const head = await fixture.engine.heads.get(room.roomId);
        return { isPartial: head?.isPartial, members: head?.memberCount('join') };
      };
      /** Starts the completion, with a clock whose timers fire when the test advances it. */
      const begin = async () => {
        const { rooms, engine } = fixture;
        const clock = {
          ...fixture.clock,
          setTimer(delay: number, callback: () => void) {
            pauses.push(delay);
            return fixture.clock.setTimer(delay, callback);
          },
        };
        const shared = { serverAcls, serverName: 'test', health: peers.health, clock, log: silentLogger };
        const completion = new StateCompletion({ ...shared, engine, incoming: rooms.incoming });
        await completion.start();
        return completion;
      };
      const totalPause = () => pauses.reduce((sum, pause) => sum + pause, 0);
      const isPartial = async () => (await fixture.engine.heads.get(room.roomId))?.isPartial;
      const shared = { room, peers, fixture, join, complete, begin, isPartial };
      return { ...shared, pauses, totalPause, provideKeys: () => room.keys.set('gone.example', key) };
    }

    it('completes a state at once when all its events can be fetched', async () => {
      const test = await partiallyJoined(0);
      assert.deepEqual(await test.complete(), { isPartial: false, members: 22 });
      assert.deepEqual(test.pauses, []);
    });

    it('retries while keys cannot be fetched', async () => {
      const test = await partiallyJoined(2);
      const completed = await test.complete(() => {
        if (test.pauses.length === 3) test.provideKeys();
      });
      assert.deepEqual(completed, { isPartial: false, members: 24 });
      assert.equal(test.pauses.length, 3);
    });

    describe('when no server returns the state at first', () => {
      /**
       * Opens a room whose servers do not return the state until the test calls `answerAgain`. Their errors have no
       * errcode, and so do not count as refusals, in contrast to `joinedAtForbiddingServers`.
       */
      async function joinedAtRefusingServers() {
        const test = await partiallyJoined(0);
        const deny = () => Promise.reject(new Error('M_FORBIDDEN'));
        for (const server of ['a.example', 'b.example']) {
          test.peers.scripts.set(server, { stateIds: deny, state: deny });
        }
        const completion = await test.begin();
        const untilFailed = (times: number) => eventually('the attempt', () => test.pauses.length === times);
        // Fails six times, up to a pause of more than five minutes.
        await untilFailed(1);
        for (let times = 1; times < 6; times++) {
          test.fixture.clock.advance(test.pauses.at(-1)!);
          await untilFailed(times + 1);
        }
        assert.ok(test.pauses.at(-1)! > 5 * minute);
        /** Runs `action`, and expects that it ends the pause, so that another attempt follows some seconds later. */
        const expectAttemptAfter = async (action: () => unknown) => {
          const count = test.pauses.length;
          await action();
          await eventually('another attempt', () => test.pauses.length > count);
          test.fixture.clock.advance(10_000);
        };
        const untilComplete = () =>
          eventually('the whole state', async () => (await test.isPartial()) === false);
        return {
          ...test,
          completion,
          expectAttemptAfter,
          untilComplete,
          answerAgain: () => test.peers.scripts.clear(),
        };
      }

      it('completes the state when a new server ACL admits this server again', async () => {
        const test = await joinedAtRefusingServers();
        test.answerAgain();
        const { room, join, fixture } = test;
        const content = { allow: ['*'] };
        const draft = { type: 'm.room.server_acl', sender: '@creator:a.example', stateKey: '', content };
        const acl = room.get(room.add({ ...draft, prev: [join] }));
        await test.expectAttemptAfter(() => fixture.engine.placement.place(room.roomId, acl));
        await test.untilComplete();
      });

      it('completes the state when a server of the room is reachable again, but not for an unrelated server', async () => {
        const test = await joinedAtRefusingServers();
        test.answerAgain();
        const count = test.pauses.length;
        await test.expectAttemptAfter(() => {
          test.peers.recover('elsewhere.example');
          test.peers.recover('b.example');
        });
        await test.untilComplete();
        assert.equal(test.pauses.length, count + 1);
      });

      it('completes the state when another user joins through a server of the room', async () => {
        const test = await joinedAtRefusingServers();
        test.answerAgain();
        await test.expectAttemptAfter(() => test.completion.begin(test.room.roomId));
        await test.untilComplete();
      });

      it('completes the state at once when the room was deleted and joined again, also for callers that have waited since the earlier join', async () => {
        const test = await joinedAtRefusingServers();
        const { roomId } = test.room;
        const waiting = test.completion.whenComplete(roomId);
        test.answerAgain();
        test.completion.begin(roomId, '$join-after-the-room-was-deleted');
        await waiting;
        assert.equal(await test.isPartial(), false);
      });

      it('tries at most once in ten seconds when retrySoon is called often, and the next regular attempt stays at its time', async () => {
        const test = await joinedAtRefusingServers();
        const pause = test.pauses.at(-1)!;
        const begun = test.fixture.clock.now();
        const count = test.peers.receivedRequests.length;
        for (let times = 0; times < 5; times++) {
          test.completion.retrySoon(test.room.roomId);
          await test.expectAttemptAfter(() => test.completion.retrySoon(test.room.roomId));
          await eventually(
            'the next pause',
            () => test.pauses.at(-1) === pause - (test.fixture.clock.now() - begun),
          );
        }
        assert.ok(
          test.peers.receivedRequests.length <= count + 5 * 4,
          String(test.peers.receivedRequests.length - count),
        );
        assert.equal(test.fixture.clock.now() - begun, 50_000);
      });
    });

    describe('when every server refuses', () => {
      /** Opens a room whose servers answer M_FORBIDDEN. @param acl server ACL of the room; by default none */
      async function joinedAtForbiddingServers(acl?: JsonObject) {
        const test = await partiallyJoined(0);
        const { room, join, fixture } = test;
        const deny = () => Promise.reject(new MatrixError(403, 'M_FORBIDDEN', 'Not in the room'));
        for (const server of ['a.example', 'b.example'])
          test.peers.scripts.set(server, { stateIds: deny, state: deny });
        if (acl) {
          const draft = { type: 'm.room.server_acl', sender: '@creator:a.example', stateKey: '' };
          const event = room.get(room.add({ ...draft, content: acl, prev: [join] }));
          await fixture.engine.placement.place(room.roomId, event);
        }
        const membership = async () => (await fixture.engine.heads.get(room.roomId))?.membership(alice);
        return { ...test, membership };
      }

      it('makes the local users leave after one to four hours, and sends no further requests', async () => {
        const test = await joinedAtForbiddingServers();
        assert.equal((await test.complete()).isPartial, true);
        assert.equal(await test.membership(), 'leave');
        assert.ok(
          test.totalPause() > 60 * minute && test.totalPause() < 240 * minute,
          `${test.totalPause()}`,
        );
        const requestsBefore = test.peers.receivedRequests.length;
        const resumed = await test.begin();
        await resumed.whenComplete(test.room.roomId);
        assert.equal(test.peers.receivedRequests.length, requestsBefore, 'no requests after a restart');
      });

      it('keeps the local users in the room while one server does not answer and all others refuse', async () => {
        const test = await joinedAtForbiddingServers();
        const fail = () => Promise.reject(new Error('no answer'));
        test.peers.scripts.set('b.example', { stateIds: fail, state: fail });
        let membershipAfter20Pauses: string | undefined;
        await test.complete(() => {
          if (test.pauses.length === 20) {
            void test.membership().then((membership) => {
              membershipAfter20Pauses = membership;
              test.peers.scripts.clear();
            });
          }
        });
        assert.equal(membershipAfter20Pauses, 'join');
        assert.equal(await test.membership(), 'join');
      });

      it('keeps the local users in the room while its server ACL denies this server', async () => {
        const test = await joinedAtForbiddingServers({ allow: ['*'], deny: ['test'] });
        const { isPartial } = await test.complete(() => {
          if (test.pauses.length === 20) test.peers.scripts.clear();
        });
        assert.deepEqual([isPartial, await test.membership()], [false, 'join']);
      });
    });

    it('waits two to three hours for the keys of a server before it completes the state without the members of that server', async () => {
      const test = await partiallyJoined(2);
      assert.deepEqual(await test.complete(), { isPartial: false, members: 22 });
      assert.ok(
        test.totalPause() >= 120 * minute && test.totalPause() < 180 * minute,
        `${test.totalPause()}`,
      );
    });

    it('completes the state after five to fifteen minutes without the members that no server provides', async () => {
      const test = await partiallyJoined(0);
      const isMember = (id: string) => test.room.get(id).event.stateKey === '@user7:b.example';
      const missingEventId = [...test.room.events.keys()].find(isMember);
      const event = async (_server: string, eventId: string) => {
        if (eventId === missingEventId) throw new MatrixError(404, 'M_NOT_FOUND', 'Unknown event');
        return test.room.pdu(eventId);
      };
      const state = async () => ({ state: [], authChain: [] });
      for (const server of ['a.example', 'b.example']) test.peers.scripts.set(server, { event, state });
      assert.deepEqual(await test.complete(), { isPartial: false, members: 21 });
      assert.ok(test.totalPause() > 5 * minute && test.totalPause() < 15 * minute, `${test.totalPause()}`);
    });

    it('completes the state after one to four hours without the members whose keys cannot be fetched, also when they are more than a tenth of the state', async () => {
      const test = await partiallyJoined(15);
      assert.deepEqual(await test.complete(), { isPartial: false, members: 22 });
      assert.ok(test.totalPause() > 60 * minute && test.totalPause() < 240 * minute, `${test.totalPause()}`);
    });
  });
});
