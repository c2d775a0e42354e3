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
  describe('StateCompletion', () => {
    /** A room with `lost` members of a server whose keys cannot be fetched until `return` is called. */
    async function joined(lost: number) {
      const room = new RemoteRoom('@creator:a.example');
      for (let index = 0; index < 20; index++) room.join(`@user${index}:b.example`);
      for (let index = 0; index < lost; index++) room.join(`@user${index}:gone.example`);
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
      /** Completes the state; timers fire at once. */
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
      /** Starts the completion; timers fire when the test advances the clock. */
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
      const waited = () => pauses.reduce((sum, pause) => sum + pause, 0);
      const isPartial = async () => (await fixture.engine.heads.get(room.roomId))?.isPartial;
      const shared = { room, peers, fixture, join, complete, begin, isPartial };
      return { ...shared, pauses, waited, return: () => room.keys.set('gone.example', key) };
    }

    it('completes a state at once when all of it can be fetched', async () => {
      const test = await joined(0);
      assert.deepEqual(await test.complete(), { isPartial: false, members: 22 });
      assert.deepEqual(test.pauses, []);
    });

    it('retries while keys cannot be fetched', async () => {
      const test = await joined(2);
      const completed = await test.complete(() => {
        if (test.pauses.length === 3) test.return();
      });
      assert.deepEqual(completed, { isPartial: false, members: 24 });
      assert.equal(test.pauses.length, 3);
    });

    describe('when no server helps at first', () => {
      /** A room that no server helps to complete until the test changes that. */
      async function refused() {
        const test = await joined(0);
        const deny = () => Promise.reject(new Error('M_FORBIDDEN'));
        for (const server of ['a.example', 'b.example']) {
          test.peers.scripts.set(server, { stateIds: deny, state: deny });
        }
        const completion = await test.begin();
        const failed = (times: number) => eventually('the attempt', () => test.pauses.length === times);
        // Fails six times, up to a pause of more than five minutes.
        await failed(1);
        for (let times = 1; times < 6; times++) {
          test.fixture.clock.advance(test.pauses.at(-1)!);
          await failed(times + 1);
        }
        assert.ok(test.pauses.at(-1)! > 5 * minute);
        /** Expects that `happen` ends the pause, so that another attempt follows some seconds later. */
        const soonAfter = async (happen: () => unknown) => {
          const count = test.pauses.length;
          await happen();
          await eventually('another attempt', () => test.pauses.length > count);
          test.fixture.clock.advance(10_000);
        };
        const untilComplete = () =>
          eventually('the whole state', async () => (await test.isPartial()) === false);
        return { ...test, completion, soonAfter, untilComplete, admit: () => test.peers.scripts.clear() };
      }

      it('completes the state when a new server ACL admits this server again', async () => {
        const test = await refused();
        test.admit();
        const { room, join, fixture } = test;
        const content = { allow: ['*'] };
        const draft = { type: 'm.room.server_acl', sender: '@creator:a.example', stateKey: '', content };
        const acl = room.get(room.add({ ...draft, prev: [join] }));
        await test.soonAfter(() => fixture.engine.placement.place(room.roomId, acl));
        await test.untilComplete();
      });

      it('completes the state when a server of the room is reachable again, but not for an unrelated server', async () => {
        const test = await refused();
        test.admit();
        const count = test.pauses.length;
        await test.soonAfter(() => {
          test.peers.recover('elsewhere.example');
          test.peers.recover('b.example');
        });
        await test.untilComplete();
        assert.equal(test.pauses.length, count + 1);
      });

      it('completes the state when another user joins through a server of the room', async () => {
        const test = await refused();
        test.admit();
        await test.soonAfter(() => test.completion.begin(test.room.roomId));
        await test.untilComplete();
      });

      it('completes the state at once when the room was joined again, and ends the wait for the earlier join', async () => {
        const test = await refused();
        const { roomId } = test.room;
        const waiting = test.completion.whenComplete(roomId);
        test.admit();
        test.completion.begin(roomId, '$join-after-the-room-was-deleted');
        await waiting;
        assert.equal(await test.isPartial(), false);
      });

      it('keeps its schedule when retrySoon is called often, and sends requests at most every ten seconds', async () => {
        const test = await refused();
        const [pause, begun] = [test.pauses.at(-1)!, test.fixture.clock.now()];
        const count = test.peers.receivedRequests.length;
        for (let times = 0; times < 5; times++) {
          test.completion.retrySoon(test.room.roomId);
          await test.soonAfter(() => test.completion.retrySoon(test.room.roomId));
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
      /** A room whose servers answer M_FORBIDDEN, with the server ACL if there is one. */
      async function forbidden(acl?: JsonObject) {
        const test = await joined(0);
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

      it('lets the local users leave after two hours, and sends no further requests', async () => {
        const test = await forbidden();
        assert.equal((await test.complete()).isPartial, true);
        assert.equal(await test.membership(), 'leave');
        assert.ok(test.waited() > 60 * minute && test.waited() < 240 * minute, `${test.waited()}`);
        const asked = test.peers.receivedRequests.length;
        const resumed = await test.begin();
        await resumed.whenComplete(test.room.roomId);
        assert.equal(test.peers.receivedRequests.length, asked, 'a restart asks no more');
      });

      it('keeps the local users while one server does not answer', async () => {
        const test = await forbidden();
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

      it('keeps the local users while the server ACL denies this server', async () => {
        const test = await forbidden({ allow: ['*'], deny: ['test'] });
        const { isPartial } = await test.complete(() => {
          if (test.pauses.length === 20) test.peers.scripts.clear();
        });
        assert.deepEqual([isPartial, await test.membership()], [false, 'join']);
      });
    });

    it('waits two hours for the keys of a server before it completes the state without the members of that server', async () => {
      const test = await joined(2);
      assert.deepEqual(await test.complete(), { isPartial: false, members: 22 });
      assert.ok(test.waited() >= 120 * minute && test.waited() < 180 * minute, `${test.waited()}`);
    });

    it('leaves out members that no server provides after five to fifteen minutes', async () => {
      const test = await joined(0);
      const isMember = (id: string) => test.room.get(id).event.stateKey === '@user7:b.example';
      const lost = [...test.room.events.keys()].find(isMember);
      const event = async (_server: string, eventId: string) => {
        if (eventId === lost) throw new MatrixError(404, 'M_NOT_FOUND', 'Unknown event');
        return test.room.pdu(eventId);
      };
      const state = async () => ({ state: [], authChain: [] });
      for (const server of ['a.example', 'b.example']) test.peers.scripts.set(server, { event, state });
      assert.deepEqual(await test.complete(), { isPartial: false, members: 21 });
      assert.ok(test.waited() > 5 * minute && test.waited() < 15 * minute, `${test.waited()}`);
    });

    it('leaves out many members whose servers are unreachable after one to four hours', async () => {
      const test = await joined(15);
      assert.deepEqual(await test.complete(), { isPartial: false, members: 22 });
      assert.ok(test.waited() > 60 * minute && test.waited() < 240 * minute, `${test.waited()}`);
    });
  });
});
