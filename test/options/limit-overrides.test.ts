import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type ManualClock, manualClock } from '../support/clocks/manual-clock.ts';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import { startTestServer, type TestServer } from '../support/servers/server.ts';
import { registerAdmin } from '../support/users/register-admin.ts';
import { enc, TestClient } from '../support/users/test-client.ts';

/** Two actions at once, and one more every ten seconds. */
const tight = { per_second: 0.1, burst_count: 2 };

/** More attempts than `tight` allows. */
const attempts = 5;

forSelectedDatabases(import.meta.url, (open) => {
  describe('rate limit overrides of users', () => {
    let server: TestServer;
    let clock: ManualClock;
    let admin: TestClient;
    let anna: TestClient;
    let ben: TestClient;
    let room: string;
    before(async () => {
      clock = manualClock();
      const rateLimits = {
        rc_message: tight,
        rc_room_creation: tight,
        rc_joins: { local: tight, remote: tight },
        rc_reports: tight,
        rc_delayed_event_mgmt: tight,
        rc_invites: { per_room: tight, per_user: tight, per_issuer: tight },
      };
      server = await startTestServer({
        database: open.kind,
        clock,
        config: { rateLimits, rooms: { max_event_delay_duration: 1_000 } },
      });
      admin = await registerAdmin(server);
      [anna, ben] = [await TestClient.register(server, 'anna'), await TestClient.register(server, 'ben')];
      room = await anna.createRoom();
      await ben.join(room);
      clock.advance(600_000);
    });
    after(() => server.stop());

    const path = (userId: string) => `/_synapse/admin/v1/users/${enc(userId)}/override_ratelimit`;
    const request = async (method: string, body?: object, userId = anna.id) => {
      const answer = await admin.request(method, path(userId), body);
      assert.equal(answer.status, 200, answer.raw);
      return answer.body;
    };

    let transactions = 0;
    /** Counts the attempts that are not refused with 429. */
    const countAllowed = async (act: () => Promise<{ status: number; raw: string }>) => {
      clock.advance(600_000);
      let times = 0;
      for (let index = 0; index < attempts; index++) {
        const { status, raw } = await act();
        assert.ok(status === 200 || status === 429, raw);
        if (status === 200) times++;
      }
      return times;
    };
    const say = (client: TestClient) => () =>
      client.call('PUT', `/rooms/${enc(room)}/send/m.room.message/${transactions++}`, {
        msgtype: 'm.text',
        body: 'x',
      });

    it('overrides with a rate above 0 replace only the rate limit of messages', async () => {
      assert.deepEqual(await request('GET'), {});
      assert.equal(await countAllowed(say(anna)), 2);
      const override = { messages_per_second: 1, burst_count: 4 };
      assert.deepEqual(await request('POST', override), override);
      assert.deepEqual(await request('GET'), override);
      assert.equal(await countAllowed(say(anna)), 4);
      assert.equal(await countAllowed(say(ben)), 2);
      assert.equal(
        await countAllowed(() => anna.call('POST', '/createRoom', {})),
        2,
        'the override is for messages only',
      );
    });

    it('overrides with a rate of 0 exempt the user from all rate limits, also after a restart, until they are deleted', async () => {
      assert.deepEqual(await request('POST', {}), { messages_per_second: 0, burst_count: 0 });
      const invite = async () => {
        const answer = await anna.call('POST', `/rooms/${enc(room)}/invite`, { user_id: admin.id });
        if (answer.status === 200) await anna.call('POST', `/rooms/${enc(room)}/kick`, { user_id: admin.id });
        return answer;
      };
      const eventId = enc(await anna.say(room, 'x'));
      const report = (client: TestClient) => () =>
        client.call('POST', `/rooms/${enc(room)}/report/${eventId}`, { reason: 'x' });
      const list = (client: TestClient) => () =>
        client.request('GET', '/_matrix/client/unstable/org.matrix.msc4140/delayed_events', undefined);
      const checkLimits = async () => {
        assert.equal(await countAllowed(say(anna)), attempts);
        assert.equal(await countAllowed(() => anna.call('POST', '/createRoom', {})), attempts);
        assert.equal(await countAllowed(invite), attempts);
        assert.equal(await countAllowed(report(anna)), attempts);
        assert.equal(await countAllowed(list(anna)), attempts);
        assert.equal(await countAllowed(report(ben)), 2);
        assert.equal(await countAllowed(list(ben)), 2);
      };
      await checkLimits();
      await server.restart();
      await checkLimits();
      assert.deepEqual(await request('DELETE'), {});
      assert.deepEqual(await request('GET'), {});
      assert.equal(await countAllowed(say(anna)), 2);
    });

    it('requests above the rate limit of a user without an override are answered with 429, retry_after_ms and a Retry-After header', async () => {
      await countAllowed(say(ben));
      const send = `${server.baseUrl}/_matrix/client/v3/rooms/${enc(room)}/send/m.room.message/refused`;
      const headers = { authorization: `Bearer ${ben.token}` };
      const limited = await fetch(send, { method: 'PUT', headers, body: '{"msgtype":"m.text","body":"x"}' });
      const body = (await limited.json()) as Record<string, unknown>;
      assert.deepEqual([limited.status, body['errcode']], [429, 'M_LIMIT_EXCEEDED']);
      assert.equal(body['retry_after_ms'], 10_000);
      assert.equal(limited.headers.get('retry-after'), '10');
    });

    it('overrides can be set by administrators only, with valid values, for existing local users', async () => {
      const codeOf = async (client: TestClient, userId: string, body: object = {}) => {
        const answer = await client.request('POST', path(userId), body);
        return [answer.status, answer.body['errcode']];
      };
      assert.deepEqual(await codeOf(ben, ben.id), [403, 'M_FORBIDDEN']);
      assert.deepEqual(await codeOf(admin, '@nobody:test'), [404, 'M_NOT_FOUND']);
      assert.deepEqual(await codeOf(admin, '@ann:elsewhere'), [400, 'M_INVALID_PARAM']);
      for (const value of [-1, 1.5, 'many']) {
        const [status] = await codeOf(admin, ben.id, { messages_per_second: value });
        assert.equal(status, 400);
      }
    });
  });
});
