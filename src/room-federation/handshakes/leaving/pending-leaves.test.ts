import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forEachDatabase } from '../../../../test/support/databases/databases.ts';
import { newSigningKey } from '../../../../test/support/inputs/signing-key.ts';
import { alice, bob, RoomsUnderTest } from '../../../../test/support/rooms/rooms.ts';
import { SignedRoom } from '../../../../test/support/rooms/signed-room.ts';
import { RemoteError, ServerUnavailable } from '../../../federation-client/index.ts';
import { Jobs, jobMigrations } from '../../../kernel/jobs/index.ts';
import { KeyedMutex } from '../../../kernel/keyed-mutex.ts';
import { silentLogger } from '../../../kernel/observability/index.ts';
import { systemRandomness } from '../../../kernel/randomness.ts';
import type { BuiltEvent, JsonObject } from '../../../protocol/index.ts';
import { PendingLeaves } from './pending-leaves.ts';
import { RemoteLeave } from './remote-leave.ts';

const [minute, hour] = [60_000, 3_600_000];

const signer = { serverName: 'test', key: newSigningKey('test') };

forEachDatabase((open) => {
  describe('a leave that not all could be told', () => {
    async function setUp() {
      const room = new SignedRoom('11', { serverName: 'far.test', key: newSigningKey('far') });
      const asked: string[] = [];
      const taken: [server: string, event: JsonObject][] = [];
      let hold: ((server: string) => Promise<void>) | undefined;
      const [down, refusing] = [new Set<string>(), new Set<string>()];
      /** Servers as far as this one sees them. */
      const peers = {
        async fetchEventTemplate(server: string) {
          asked.push(server);
          await hold?.(server);
          if (down.has(server)) throw new ServerUnavailable(server);
          if (refusing.has(server)) throw new RemoteError(server, 403, { errcode: 'M_FORBIDDEN' });
          return { roomVersion: '11', event: room.membershipTemplate(alice, 'leave').event as JsonObject };
        },
        async sendLeave(server: string, { event }: { event: JsonObject }) {
          taken.push([server, event]);
        },
      };
      const start = async (under: RoomsUnderTest) => {
        const jobs = new Jobs({ ...under, log: silentLogger, alone: true });
        const parts = { ...under, jobs, peers, signer, randomness: systemRandomness, log: silentLogger };
        const roomMutex = new KeyedMutex();
        const pendingLeaves = new PendingLeaves({ ...parts, roomMutex, serverName: 'test' });
        const { placement } = under.engine;
        const remoteLeave = new RemoteLeave({ ...parts, placement, pendingLeaves } as never);
        await jobs.start();
        return { under, jobs, roomMutex, pendingLeaves, remoteLeave };
      };
      let run = await start(await RoomsUnderTest.open(open, jobMigrations));
      const place = { roomId: room.roomId, version: room.version };
      const draft = { type: 'm.room.member', content: { membership: 'invite' } };
      const takeInvite = async ({ event, json }: BuiltEvent, server = 'far.test') =>
        run.under.engine.placement.addOutOfBand(place, { event, json }, { state: [], server });
      const invite = () => takeInvite(room.setState(draft.type, draft.content, alice));
      let present = await invite();
      return {
        room,
        asked,
        taken,
        down,
        refusing,
        /** The next server that is asked answers when it may. */
        holdBack() {
          const { promise: asked, resolve: isAsked } = Promise.withResolvers<void>();
          const { promise: mayAnswer, resolve: proceed } = Promise.withResolvers<void>();
          hold = () => {
            isAsked();
            return mayAnswer;
          };
          return { asked, proceed };
        },
        async inviteAgain() {
          present = await invite();
        },
        async inviteBy(server: string) {
          const other = new SignedRoom('11', { serverName: server, key: newSigningKey('other') });
          other.roomId = room.roomId;
          present = await takeInvite(other.setState(draft.type, draft.content, alice), server);
        },
        get run() {
          return run;
        },
        leave: (each: string[], others: string[] = []) =>
          run.remoteLeave.leave({ present, userId: alice, content: { reason: 'no' }, each, others }),
        async restart() {
          await run.jobs.stop();
          run = await start(await run.under.restart(open));
        },
        async pass(milliseconds: number) {
          run.under.clock.advance(milliseconds);
          await run.jobs.settled();
        },
        membership: async () => (await run.under.engine.userRooms.of(alice)).get(room.roomId)?.membership,
        jobs: async () => (await run.jobs.list({ kind: 'rooms/tell-leave' })).map(({ state }) => state),
      };
    }

    it('is a leave at once, and told when the server can be reached, also after a restart', async () => {
      const test = await setUp();
      test.down.add('far.test');
      await test.leave(['far.test']);
      assert.equal(await test.membership(), 'leave');
      await test.restart();
      await test.pass(minute - 1);
      assert.deepEqual(test.asked, ['far.test']);
      await test.pass(1);
      await test.pass(2 * minute);
      assert.equal(test.asked.length, 3);
      test.down.clear();
      await test.pass(4 * minute);
      assert.equal(test.asked.length, 4);
      const [[server, event] = []] = test.taken;
      assert.equal(server, 'far.test');
      assert.deepEqual(event?.['content'], { reason: 'no', membership: 'leave' });
      assert.deepEqual(await test.jobs(), []);
      await test.pass(24 * hour);
      assert.equal(test.taken.length, 1);
    });

    it('is told to those alone who have not heard it', async () => {
      const test = await setUp();
      test.down.add('far.test');
      test.refusing.add('other.test');
      await test.leave(['far.test', 'near.test', 'other.test'], ['fourth.test']);
      assert.deepEqual(test.asked.splice(0), ['far.test', 'near.test', 'other.test']);
      test.down.clear();
      await test.pass(minute);
      assert.deepEqual(test.asked, ['far.test']);
      assert.deepEqual(
        test.taken.map(([server]) => server),
        ['near.test', 'far.test'],
      );
    });

    it('is told to one who may know of it when those who have invited can not be reached or refuse', async () => {
      const test = await setUp();
      for (const server of ['far.test', 'third.test']) test.down.add(server);
      test.refusing.add('near.test');
      await test.leave(['far.test', 'near.test'], ['third.test', 'fourth.test', 'fifth.test']);
      assert.deepEqual(test.asked.splice(0), ['far.test', 'near.test', 'third.test', 'fourth.test']);
      await test.pass(minute);
      assert.deepEqual(test.asked, ['far.test']);
    });

    it('is told when a server is back', async () => {
      const test = await setUp();
      test.down.add('far.test');
      await test.leave(['far.test']);
      await test.pass(minute);
      await test.run.pendingLeaves.retrySoonFor('third.test');
      await test.pass(3_000);
      assert.equal(test.asked.length, 2);
      test.down.clear();
      await test.run.pendingLeaves.retrySoonFor('far.test');
      await test.pass(3_000);
      assert.equal(test.taken.length, 1);
    });

    it('is given up after a day, however often the server seems to be back', async () => {
      const test = await setUp();
      test.down.add('far.test');
      await test.leave(['far.test']);
      for (let hours = 0; hours < 25; hours += 1) await test.pass(hour);
      assert.ok(test.asked.length > 8 && test.asked.length < 20, String(test.asked.length));
      assert.deepEqual(await test.jobs(), ['waiting']);
      await test.run.pendingLeaves.retrySoonFor('far.test');
      for (let hours = 0; hours < 25; hours += 1) await test.pass(hour);
      assert.deepEqual(await test.jobs(), []);
      const count = test.asked.length;
      await test.pass(100 * hour);
      assert.equal(test.asked.length, count);
    });

    it('is not told of who was invited again meanwhile', async () => {
      const test = await setUp();
      test.down.add('far.test');
      await test.leave(['far.test']);
      test.down.clear();
      await test.inviteAgain();
      await test.pass(minute);
      assert.deepEqual([test.taken, await test.jobs()], [[], []]);
      assert.equal(await test.membership(), 'invite');
    });

    it('is not told while somebody gets into the room, and not after that', async () => {
      const test = await setUp();
      test.down.add('far.test');
      await test.leave(['far.test']);
      test.down.clear();
      const { promise, resolve } = Promise.withResolvers<void>();
      const joining = test.run.roomMutex.run(test.room.roomId, () => promise);
      test.run.under.clock.advance(minute);
      await test.inviteAgain();
      assert.deepEqual(test.asked.splice(0), ['far.test']);
      resolve();
      await joining;
      await test.pass(0);
      assert.deepEqual([test.asked, await test.jobs()], [[], []]);
    });

    it('is told before others get into the room when that has begun', async () => {
      const test = await setUp();
      test.down.add('far.test');
      await test.leave(['far.test']);
      test.down.clear();
      const order: string[] = [];
      const held = test.holdBack();
      test.run.under.clock.advance(minute);
      await held.asked;
      const joining = test.run.roomMutex.run(test.room.roomId, async () => void order.push('join'));
      order.push('leave');
      held.proceed();
      await joining;
      await test.pass(0);
      assert.deepEqual(order, ['leave', 'join']);
      assert.equal(test.taken.length, 1);
    });

    it('is not told again when all have heard of a newer one', async () => {
      const test = await setUp();
      test.down.add('far.test');
      await test.leave(['far.test']);
      test.down.clear();
      await test.inviteAgain();
      await test.leave(['far.test']);
      assert.deepEqual([test.taken.length, await test.jobs()], [1, []]);
    });

    it('is said in the room itself when another user of this server has got in meanwhile', async () => {
      const test = await setUp();
      test.down.add('far.test');
      const { room, run } = test;
      // Somebody who has no business with the room has invited last.
      await test.inviteBy('evil.test');
      await test.leave(['evil.test', 'far.test']);
      const join = { type: 'm.room.member', stateKey: bob, sender: bob, content: { membership: 'join' } };
      const state = [...room.state.values()];
      const { roomId, version } = room;
      await run.under.engine.placement.enter(
        { roomId, version },
        { event: room.build(join), state, authChain: state },
      );
      const head = await run.under.engine.heads.get(roomId);
      assert.equal(head?.membership(alice), 'invite');
      await test.pass(minute);
      assert.equal(head?.membership(alice), 'leave');
      assert.equal(await test.membership(), 'leave');
      assert.deepEqual([test.asked, await test.jobs()], [['evil.test', 'far.test'], []]);
    });
  });
});
