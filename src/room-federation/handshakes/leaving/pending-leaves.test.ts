import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../../test/support/databases/databases.ts';
import { newSigningKey } from '../../../../test/support/inputs/signing-key.ts';
import { alice, bob, RoomsUnderTest } from '../../../../test/support/rooms/rooms.ts';
import { SignedRoom } from '../../../../test/support/rooms/signed-room.ts';
import { Jobs, jobMigrations } from '../../../kernel/jobs/index.ts';
import { KeyedMutex } from '../../../kernel/keyed-mutex.ts';
import { silentLogger } from '../../../kernel/observability/index.ts';
import { systemRandomness } from '../../../kernel/randomness.ts';
import type { BuiltEvent } from '../../../protocol/index.ts';
import { PendingLeaves } from './pending-leaves.ts';
import { RemoteLeave } from './remote-leave.ts';
import { ScriptedServers } from './test/scripted-servers.ts';

const minute = 60_000;
const hour = 60 * minute;

const signer = { serverName: 'test', key: newSigningKey('test') };

forSelectedDatabases(import.meta.url, (open) => {
  describe('PendingLeaves sends leaves to servers that have not received them', () => {
    async function setUp() {
      const room = new SignedRoom('11', { serverName: 'far.test', key: newSigningKey('far') });
      const servers = new ScriptedServers(room);
      const start = async (fixture: RoomsUnderTest) => {
        const jobs = new Jobs({ ...fixture, log: silentLogger, isOnlyProcess: true });
        const parts = {
          ...fixture,
          jobs,
          peers: servers,
          signer,
          randomness: systemRandomness,
          log: silentLogger,
        };
        const roomMutex = new KeyedMutex();
        const pendingLeaves = new PendingLeaves({ ...parts, roomMutex, serverName: 'test' });
        const { placement } = fixture.engine;
        const remoteLeave = new RemoteLeave({ ...parts, placement, pendingLeaves } as never);
        await jobs.start();
        return { fixture, jobs, roomMutex, pendingLeaves, remoteLeave };
      };
      let run = await start(await RoomsUnderTest.open(open, jobMigrations));
      const roomRef = { roomId: room.roomId, version: room.version };
      const draft = { type: 'm.room.member', content: { membership: 'invite' } };
      const receiveInvite = async ({ event, json }: BuiltEvent, server = 'far.test') =>
        run.fixture.engine.placement.addOutOfBand(roomRef, { event, json }, { state: [], server });
      const invite = () => receiveInvite(room.setState(draft.type, draft.content, alice));
      let present = await invite();
      return {
        room,
        servers,
        async inviteAgain() {
          present = await invite();
        },
        async inviteBy(server: string) {
          const inviterRoom = new SignedRoom('11', { serverName: server, key: newSigningKey('other') });
          inviterRoom.roomId = room.roomId;
          present = await receiveInvite(inviterRoom.setState(draft.type, draft.content, alice), server);
        },
        get run() {
          return run;
        },
        /** Sends the leave to `each` server, and to `others` only until one server has accepted it. */
        leave: (each: string[], others: string[] = []) =>
          run.remoteLeave.leave({ present, userId: alice, content: { reason: 'no' }, each, others }),
        async restart() {
          await run.jobs.stop();
          run = await start(await run.fixture.restart(open));
        },
        /** Advances the clock, and waits for the jobs that are due. */
        async pass(milliseconds: number) {
          run.fixture.clock.advance(milliseconds);
          await run.jobs.settled();
        },
        membership: async () => (await run.fixture.engine.userRooms.of(alice)).get(room.roomId)?.membership,
        jobs: async () => (await run.jobs.list({ kind: 'rooms/send-leave' })).map(({ state }) => state),
      };
    }

    it('stores the leave at once and sends it when the server is reachable, also after a restart', async () => {
      const test = await setUp();
      test.servers.down.add('far.test');
      await test.leave(['far.test']);
      assert.equal(await test.membership(), 'leave');
      await test.restart();
      await test.pass(minute - 1);
      assert.deepEqual(test.servers.requestedServers, ['far.test']);
      await test.pass(1);
      await test.pass(2 * minute);
      assert.equal(test.servers.requestedServers.length, 3);
      test.servers.down.clear();
      await test.pass(4 * minute);
      assert.equal(test.servers.requestedServers.length, 4);
      const [[server, event] = []] = test.servers.accepted;
      assert.equal(server, 'far.test');
      assert.deepEqual(event?.['content'], { reason: 'no', membership: 'leave' });
      assert.deepEqual(await test.jobs(), []);
      await test.pass(24 * hour);
      assert.equal(test.servers.accepted.length, 1);
    });

    it('answers the client while a server is slow, and sends the leave to that server afterwards', async () => {
      const test = await setUp();
      const request = test.servers.holdResponses();
      const leaving = test.leave(['far.test', 'near.test']);
      await request.received;
      test.run.fixture.clock.advance(500);
      await leaving;
      assert.equal(await test.membership(), 'leave');
      assert.deepEqual([test.servers.accepted, await test.jobs()], [[], ['waiting']]);
      const joining = test.run.roomMutex.run(test.room.roomId, async () => test.servers.accepted.length);
      request.proceed();
      assert.equal(await joining, 2);
      assert.deepEqual(
        [test.servers.accepted.map(([server]) => server), await test.jobs()],
        [['far.test', 'near.test'], []],
      );
    });

    it('sends a leave again after a crash during a request to a slow server', async () => {
      const test = await setUp();
      const request = test.servers.holdResponses();
      const leaving = test.leave(['far.test']);
      await request.received;
      test.run.fixture.clock.advance(500);
      await leaving;
      await test.restart();
      request.proceed();
      await test.pass(minute);
      assert.equal(test.servers.accepted.at(-1)?.[0], 'far.test');
    });

    it('sends the leave again only to the servers that have not received it', async () => {
      const test = await setUp();
      test.servers.down.add('far.test');
      test.servers.refusing.add('other.test');
      await test.leave(['far.test', 'near.test', 'other.test'], ['fourth.test']);
      assert.deepEqual(test.servers.requestedServers.splice(0), ['far.test', 'near.test', 'other.test']);
      test.servers.down.clear();
      await test.pass(minute);
      assert.deepEqual(test.servers.requestedServers, ['far.test']);
      assert.deepEqual(
        test.servers.accepted.map(([server]) => server),
        ['near.test', 'far.test'],
      );
    });

    it('when all inviting servers are unreachable or refuse, sends the leave to other candidates until one accepts it', async () => {
      const test = await setUp();
      for (const server of ['far.test', 'third.test']) test.servers.down.add(server);
      test.servers.refusing.add('near.test');
      await test.leave(['far.test', 'near.test'], ['third.test', 'fourth.test', 'fifth.test']);
      assert.deepEqual(test.servers.requestedServers.splice(0), [
        'far.test',
        'near.test',
        'third.test',
        'fourth.test',
      ]);
      await test.pass(minute);
      assert.deepEqual(test.servers.requestedServers, ['far.test']);
    });

    it('retries a leave within seconds when its server is reachable again', async () => {
      const test = await setUp();
      test.servers.down.add('far.test');
      await test.leave(['far.test']);
      await test.pass(minute);
      await test.run.pendingLeaves.retrySoonFor('third.test');
      await test.pass(3_000);
      assert.equal(test.servers.requestedServers.length, 2);
      test.servers.down.clear();
      await test.run.pendingLeaves.retrySoonFor('far.test');
      await test.pass(3_000);
      assert.equal(test.servers.accepted.length, 1);
    });

    it('gives up a leave after more than 25 hours, even if it is retried because the server is reachable again', async () => {
      const test = await setUp();
      test.servers.down.add('far.test');
      await test.leave(['far.test']);
      for (let hours = 0; hours < 25; hours += 1) await test.pass(hour);
      assert.ok(
        test.servers.requestedServers.length > 8 && test.servers.requestedServers.length < 20,
        String(test.servers.requestedServers.length),
      );
      assert.deepEqual(await test.jobs(), ['waiting']);
      await test.run.pendingLeaves.retrySoonFor('far.test');
      for (let hours = 0; hours < 25; hours += 1) await test.pass(hour);
      assert.deepEqual(await test.jobs(), []);
      const count = test.servers.requestedServers.length;
      await test.pass(100 * hour);
      assert.equal(test.servers.requestedServers.length, count);
    });

    it('does not send the leave when the user was invited again', async () => {
      const test = await setUp();
      test.servers.down.add('far.test');
      await test.leave(['far.test']);
      test.servers.down.clear();
      await test.inviteAgain();
      await test.pass(minute);
      assert.deepEqual([test.servers.accepted, await test.jobs()], [[], []]);
      assert.equal(await test.membership(), 'invite');
    });

    it('does not send the leave while the user joins the room again, nor afterwards', async () => {
      const test = await setUp();
      test.servers.down.add('far.test');
      await test.leave(['far.test']);
      test.servers.down.clear();
      const { promise, resolve } = Promise.withResolvers<void>();
      const joining = test.run.roomMutex.run(test.room.roomId, () => promise);
      test.run.fixture.clock.advance(minute);
      await test.inviteAgain();
      assert.deepEqual(test.servers.requestedServers.splice(0), ['far.test']);
      resolve();
      await joining;
      await test.pass(0);
      assert.deepEqual([test.servers.requestedServers, await test.jobs()], [[], []]);
    });

    it('finishes a leave that is being sent, before a join of the room begins', async () => {
      const test = await setUp();
      test.servers.down.add('far.test');
      await test.leave(['far.test']);
      test.servers.down.clear();
      const order: string[] = [];
      const request = test.servers.holdResponses();
      test.run.fixture.clock.advance(minute);
      await request.received;
      const joining = test.run.roomMutex.run(test.room.roomId, async () => void order.push('join'));
      order.push('leave');
      request.proceed();
      await joining;
      await test.pass(0);
      assert.deepEqual(order, ['leave', 'join']);
      assert.equal(test.servers.accepted.length, 1);
    });

    it('drops the pending leave when all servers have received a newer leave', async () => {
      const test = await setUp();
      test.servers.down.add('far.test');
      await test.leave(['far.test']);
      test.servers.down.clear();
      await test.inviteAgain();
      await test.leave(['far.test']);
      assert.deepEqual([test.servers.accepted.length, await test.jobs()], [1, []]);
    });

    it('sends the leave as an event of the room when another local user has joined the room', async () => {
      const test = await setUp();
      test.servers.down.add('far.test');
      const { room, run } = test;
      // The latest invite is from a server that is unrelated to the room.
      await test.inviteBy('evil.test');
      await test.leave(['evil.test', 'far.test']);
      const join = { type: 'm.room.member', stateKey: bob, sender: bob, content: { membership: 'join' } };
      const state = [...room.state.values()];
      const { roomId, version } = room;
      await run.fixture.engine.placement.enter(
        { roomId, version },
        { event: room.build(join), state, authChain: state },
      );
      const head = await run.fixture.engine.heads.get(roomId);
      assert.equal(head?.membership(alice), 'invite');
      await test.pass(minute);
      assert.equal(head?.membership(alice), 'leave');
      assert.equal(await test.membership(), 'leave');
      assert.deepEqual([test.servers.requestedServers, await test.jobs()], [['evil.test', 'far.test'], []]);
    });
  });
});
