import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../../test/support/databases/databases.ts';
import { newSigningKey } from '../../../../test/support/inputs/signing-key.ts';
import { alice, bob, RoomsUnderTest } from '../../../../test/support/rooms/rooms.ts';
import { SignedRoom } from '../../../../test/support/rooms/signed-room.ts';
import { Jobs, jobMigrations } from '../../../kernel/jobs/index.ts';
import { silentLogger } from '../../../kernel/observability/index.ts';
import { InviteChecks } from './invite-check.ts';
import { ScriptedServers } from './test/scripted-servers.ts';

const second = 1_000;
const hour = 3_600_000;

forSelectedDatabases(import.meta.url, (open) => {
  describe('InviteChecks checks with other servers whether an invite is over when another user claims to have ended it', () => {
    async function setUp({ version = '11' } = {}) {
      const room = new SignedRoom(version, { serverName: 'far.test', key: newSigningKey('far') });
      const servers = new ScriptedServers(room);
      const start = async (fixture: RoomsUnderTest) => {
        const jobs = new Jobs({ ...fixture, log: silentLogger, isOnlyProcess: true });
        const checks = new InviteChecks({ ...fixture, jobs, peers: servers, serverName: 'test' });
        await jobs.start();
        return { fixture, jobs, checks };
      };
      let run = await start(await RoomsUnderTest.open(open, jobMigrations));
      const invite = () => {
        const { event, json } = room.setState('m.room.member', { membership: 'invite' }, alice);
        const roomRef = { roomId: room.roomId, version: room.version };
        return run.fixture.engine.placement.addOutOfBand(
          roomRef,
          { event, json },
          { state: [], server: 'far.test' },
        );
      };
      let current = await invite();
      return {
        room,
        servers,
        get run() {
          return run;
        },
        async inviteAgain() {
          current = await invite();
        },
        /** Queues a check after a kick by another user. */
        async begin(servers: readonly string[] = ['far.test']) {
          const sender = '@moderator:far.test';
          const content = { membership: 'leave', reason: 'kicked' };
          const kick = room.build({ type: 'm.room.member', stateKey: alice, sender, content });
          const check = { roomId: room.roomId, userId: alice, invite: current.nid, servers };
          await run.checks.begin(check, kick);
          return kick.event;
        },
        async restart() {
          await run.jobs.stop();
          run = await start(await run.fixture.restart(open));
        },
        /** Advances the clock, and waits for the jobs that are due. */
        async pass(milliseconds: number) {
          run.fixture.clock.advance(milliseconds);
          await run.jobs.settled();
        },
        async membership() {
          const { engine } = run.fixture;
          const entry = (await engine.userRooms.of(alice)).get(room.roomId);
          const stored = entry && (await engine.events.get(entry.eventNid));
          return [entry?.membership, stored?.event.eventId];
        },
        jobs: async () => (await run.jobs.list({ kind: 'rooms/check-invite' })).map(({ state }) => state),
      };
    }

    for (const version of ['2', '11']) {
      it(`ends an invite of room version ${version} after a restart, when the inviting server confirms that the invite is over`, async () => {
        const test = await setUp({ version });
        const kick = await test.begin();
        await test.pass(0);
        assert.deepEqual([test.servers.requestedServers.length, (await test.membership())[0]], [1, 'invite']);
        await test.restart();
        test.servers.refusing.add('far.test');
        await test.pass(2 * second - 1);
        assert.equal(test.servers.requestedServers.length, 1);
        await test.pass(1);
        assert.equal(test.servers.requestedServers.length, 2);
        assert.deepEqual(await test.membership(), ['leave', kick.eventId]);
        assert.deepEqual(await test.jobs(), []);
        const { sender, content } = (await test.run.fixture.engine.events.get(
          (await test.run.fixture.engine.userRooms.of(alice)).get(test.room.roomId)!.eventNid,
        ))!.event;
        assert.deepEqual([sender, content], [kick.sender, kick.content]);
      });
    }

    it('sends a request again after a restart when the shutdown interrupted it', async () => {
      const test = await setUp();
      const request = test.servers.holdResponses();
      await test.begin();
      await request.received;
      const restarted = test.restart();
      request.proceed();
      await restarted;
      test.servers.refusing.add('far.test');
      await test.pass(0);
      assert.equal(test.servers.requestedServers.length, 2);
      assert.equal((await test.membership())[0], 'leave');
    });

    it('sends requests to the servers six times within about 75 minutes, also across restarts, and then keeps the invite', async () => {
      const test = await setUp();
      test.servers.down.add('far.test');
      await test.begin(['far.test', 'near.test']);
      await test.pass(0);
      for (const delay of [2, 15, 120, 900, 3_600]) {
        await test.restart();
        assert.deepEqual(test.servers.requestedServers.splice(0), ['far.test', 'near.test']);
        await test.pass(delay * second - 1);
        assert.deepEqual([test.servers.requestedServers, await test.jobs()], [[], ['waiting']]);
        await test.pass(1);
      }
      assert.deepEqual(
        [test.servers.requestedServers.splice(0), await test.jobs()],
        [['far.test', 'near.test'], []],
      );
      await test.pass(24 * hour);
      assert.deepEqual([test.servers.requestedServers, (await test.membership())[0]], [[], 'invite']);
    });

    it('has one pending check of an invite when several users claim to have ended the invite', async () => {
      const test = await setUp();
      await test.begin();
      await test.pass(0);
      for (let count = 0; count < 3; count++) await test.begin();
      await test.pass(0);
      assert.deepEqual([test.servers.requestedServers.length, await test.jobs()], [1, ['waiting']]);
    });

    it('sends no request about an invite that a newer invite has replaced', async () => {
      const test = await setUp();
      await test.begin();
      await test.pass(0);
      await test.inviteAgain();
      test.servers.refusing.add('far.test');
      await test.pass(2 * second);
      assert.deepEqual([test.servers.requestedServers.length, await test.jobs()], [1, []]);
      assert.equal((await test.membership())[0], 'invite');
    });

    it('sends no request about an invite to a room that another local user has joined', async () => {
      const test = await setUp();
      const { room, run } = test;
      await test.begin();
      await test.pass(0);
      const join = { type: 'm.room.member', stateKey: bob, sender: bob, content: { membership: 'join' } };
      const state = [...room.state.values()];
      await run.fixture.engine.placement.enter(
        { roomId: room.roomId, version: room.version },
        { event: room.build(join), state, authChain: state },
      );
      test.servers.refusing.add('far.test');
      await test.pass(2 * second);
      assert.deepEqual([test.servers.requestedServers.length, await test.jobs()], [1, []]);
      assert.equal((await test.membership())[0], 'invite');
    });
  });
});
