import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { eventually } from '../../../test/clients/eventually.ts';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer, type TestUser } from '../../../test/support/servers/server.ts';
import { registerAdmin } from '../../../test/support/users/register-admin.ts';
import { TestRoom } from '../../../test/support/users/test-room.ts';

const minute = 60_000;
const day = 24 * 3_600_000;

async function openRedactedRoom(database: 'sqlite' | 'postgres', redaction_retention_period: number | null) {
  const clock = manualClock();
  const config = { rooms: { redaction_retention_period } };
  const server = await startTestServer({ database, clock, config });
  const [alice, bob] = [await server.register('alice'), await server.register('bob')];
  const talk = await TestRoom.create(server, alice, [bob]);
  const secret = await talk.say(bob, 'secret');
  await talk.redact(bob, secret);
  return { clock, server, talk, alice, bob, secret };
}

/** Requests an event with its original content (MSC2815). @returns the content, or status and errcode of an error */
async function unredacted(talk: TestRoom, user: TestUser, eventId: string) {
  const query = { 'fi.mau.msc2815.include_unredacted_content': true };
  const path = `/event/${encodeURIComponent(eventId)}`;
  const { status, body } = await talk.call(user, 'GET', path, { query });
  return status === 200 ? body['content'] : [status, body['errcode']];
}

const originalContent = { msgtype: 'm.text', body: 'secret' };
const contentDeleted = [404, 'FI.MAU.MSC2815_UNREDACTED_CONTENT_DELETED'];

forSelectedDatabases(import.meta.url, (database) => {
  describe('the original content of a redacted event', () => {
    const withRetentionPeriod = async (
      period: number | null,
      work: (room: Awaited<ReturnType<typeof openRedactedRoom>>) => Promise<void>,
    ) => {
      const room = await openRedactedRoom(database.kind, period);
      try {
        await work(room);
      } finally {
        await room.server.stop();
      }
    };
    const isDeleted = async ({ talk, alice, secret }: { talk: TestRoom; alice: TestUser; secret: string }) =>
      Array.isArray(await unredacted(talk, alice, secret));

    it('returns the original content of a redacted event to moderators until the retention period ends [option: redaction_retention_period]', async () => {
      await withRetentionPeriod(7 * day, async (room) => {
        const { clock, server, talk, alice, bob, secret } = room;
        assert.deepEqual((await talk.event(alice, secret)).content, {});
        assert.deepEqual(await unredacted(talk, alice, secret), originalContent);
        assert.deepEqual(await unredacted(talk, bob, secret), [403, 'M_FORBIDDEN']);
        clock.advance(7 * day - minute);
        await server.restart();
        assert.deepEqual(await unredacted(talk, alice, secret), originalContent);
        clock.advance(6 * minute);
        // The job that deletes the content runs at the same time as requests.
        await eventually('the deletion of the original content', () => isDeleted(room));
        assert.deepEqual(await unredacted(talk, alice, secret), contentDeleted);
        await server.restart();
        assert.deepEqual(await unredacted(talk, alice, secret), contentDeleted);
        const event = await talk.event(alice, secret);
        assert.deepEqual([event.content, event.sender, event.event_id], [{}, bob.userId, secret]);
      });
    });

    it('returns the original content of a redacted event only to joined users with the redact level', async () => {
      await withRetentionPeriod(null, async ({ server, talk, alice, bob, secret }) => {
        const [mona, admin] = [await server.register('mona'), await registerAdmin(server)];
        assert.deepEqual(await unredacted(talk, mona, secret), [404, 'M_NOT_FOUND']);
        const path = `/rooms/${encodeURIComponent(talk.roomId)}/event/${encodeURIComponent(secret)}`;
        const query = { 'fi.mau.msc2815.include_unredacted_content': true };
        const adminAnswer = await admin.call('GET', path, undefined, query);
        assert.deepEqual([adminAnswer.status, adminAnswer.body['errcode']], [404, 'M_NOT_FOUND']);
        await talk.join(mona);
        assert.deepEqual(await unredacted(talk, mona, secret), [403, 'M_FORBIDDEN']);
        const levels = { users: { [alice.userId]: 100, [mona.userId]: 50 } };
        await talk.setState(alice, 'm.room.power_levels', levels);
        assert.deepEqual(await unredacted(talk, mona, secret), originalContent);
        assert.deepEqual(await unredacted(talk, bob, secret), [403, 'M_FORBIDDEN']);
        await talk.leave(mona);
        assert.deepEqual(await unredacted(talk, mona, secret), [403, 'M_FORBIDDEN']);
      });
    });

    it('hides the original content of a redacted event after the account of the sender is erased', async () => {
      await withRetentionPeriod(null, async ({ server, talk, alice, bob, secret }) => {
        const auth = { type: 'm.login.password', user: bob.userId, password: 'correct horse' };
        const body = { erase: true, auth };
        const path = '/_matrix/client/v3/account/deactivate';
        const { status, raw } = await server.api('POST', path, { token: bob.token, body });
        assert.equal(status, 200, raw);
        assert.deepEqual(await unredacted(talk, alice, secret), contentDeleted);
      });
    });

    it('stores the original content of a redacted event without limit when the period is null', async () => {
      await withRetentionPeriod(null, async ({ clock, server, talk, alice, secret }) => {
        clock.advance(365 * day);
        await server.restart();
        clock.advance(10 * minute);
        assert.deepEqual(await unredacted(talk, alice, secret), originalContent);
      });
    });

    it('when unredacted content is requested, returns the content of an event that was not redacted', async () => {
      await withRetentionPeriod(day, async ({ talk, alice, bob }) => {
        const event = await talk.say(bob, 'plain');
        assert.deepEqual(await unredacted(talk, alice, event), { msgtype: 'm.text', body: 'plain' });
        assert.deepEqual(await unredacted(talk, alice, '$nothing'), [404, 'M_NOT_FOUND']);
      });
    });
  });
});
