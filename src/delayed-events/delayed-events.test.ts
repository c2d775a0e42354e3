import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../../test/clients/eventually.ts';
import { manualClock } from '../../test/support/clocks/manual-clock.ts';
import { forSelectedDatabases } from '../../test/support/databases/databases.ts';
import {
  type ConfigurationOverrides,
  startTestServer,
  type TestServer,
  type TestUser,
} from '../../test/support/servers/server.ts';
import { idsOf, TestRoom } from '../../test/support/users/test-room.ts';
import { openDatabase } from '../kernel/database/index.ts';
import { silentLogger } from '../kernel/observability/index.ts';

interface Answer {
  readonly status: number;
  readonly body: Record<string, unknown>;
  readonly retryAfter?: string;
}

/** Sends a request of MSC4140, which the specification does not have. */
async function call(
  server: TestServer,
  user: TestUser | undefined,
  method: string,
  path: string,
  body?: object,
): Promise<Answer> {
  const response = await fetch(`${server.baseUrl}/_matrix/client/${path}`, {
    method,
    headers: user ? { authorization: `Bearer ${user.token}` } : {},
    ...(body && { body: JSON.stringify(body) }),
  });
  const retryAfter = response.headers.get('retry-after');
  const answer = (await response.json()) as Answer['body'];
  return { status: response.status, body: answer, ...(retryAfter !== null && { retryAfter }) };
}

const unstable = 'unstable/org.matrix.msc4140';
const day = 24 * 3_600_000;
const hello = { msgtype: 'm.text', body: 'hello' };

const withMaxDelay = (max_event_delay_duration: number | null): ConfigurationOverrides => ({
  rooms: { max_event_delay_duration },
});

forSelectedDatabases(import.meta.url, (open) => {
  describe('delayed events', () => {
    const clock = manualClock();
    let server: TestServer;
    let alice: TestUser;
    let bob: TestUser;
    let talk: TestRoom;
    let transactions = 0;
    before(async () => {
      server = await startTestServer({ database: open.kind, clock, config: withMaxDelay(day) });
      [alice, bob] = [await server.register('alice'), await server.register('bob')];
      talk = await TestRoom.create(server, alice, [bob]);
    });
    after(() => server.stop());

    const room = () => `v3/rooms/${encodeURIComponent(talk.roomId)}`;
    const delayedPath = (delay: number | string, path: string) =>
      `${room()}/${path}?org.matrix.msc4140.delay=${delay}`;
    const schedule = async (delay: number, body: object = hello, user = alice) => {
      const path = delayedPath(delay, `send/m.room.message/delay${transactions++}`);
      const answer = await call(server, user, 'PUT', path, body);
      assert.equal(answer.status, 200, JSON.stringify(answer.body));
      return String(answer.body['delay_id']);
    };
    const manage = (delayId: string, action: string, user?: TestUser) =>
      call(server, user, 'POST', `${unstable}/delayed_events/${delayId}/${action}`, {});
    const readDelayedEvent = async (delayId: string) =>
      (await call(server, alice, 'GET', `${unstable}/delayed_events/${delayId}`)).body as {
        delay: number;
        running_since: number;
        finalised?: { event_id?: string; error?: { errcode: string }; finalised_ts: number };
      };
    const messages = async () =>
      idsOf(await talk.call(alice, 'GET', '/messages', { query: { dir: 'b', limit: 5 } }));
    /** Waits for the job that ends a delayed event. @returns how the event ended */
    const waitUntilFinalised = (delayId: string) =>
      eventually('end of the delayed event', async () => (await readDelayedEvent(delayId)).finalised);

    it('sends events when their delay is over, also after a restart of the server', async () => {
      const delayId = await schedule(60_000);
      await server.restart();
      assert.equal((await readDelayedEvent(delayId)).finalised, undefined);
      clock.advance(59_000);
      assert.equal((await readDelayedEvent(delayId)).finalised, undefined);
      clock.advance(1_000);
      const { event_id: eventId } = await waitUntilFinalised(delayId);
      const event = await talk.event(bob, String(eventId));
      assert.deepEqual([event.content, event.sender], [hello, alice.userId]);
      assert.deepEqual(
        [event.unsigned?.['delay_id'], event.unsigned?.['transaction_id']],
        [undefined, undefined],
      );
      const { unsigned } = await talk.event(alice, String(eventId));
      assert.deepEqual(
        [unsigned?.['delay_id'], unsigned?.['org.matrix.msc4140.delay_id'], unsigned?.['transaction_id']],
        [delayId, delayId, undefined],
      );
      assert.equal((await messages())[0], eventId);
    });

    it('sends delayed state events', async () => {
      const answer = await call(server, alice, 'PUT', delayedPath(1_000, 'state/org.example.call/me'), {
        left: true,
      });
      const empty = await call(server, alice, 'PUT', delayedPath(1_000, 'state/org.example.call'), {
        all: 'left',
      });
      clock.advance(1_000);
      await waitUntilFinalised(String(answer.body['delay_id']));
      await waitUntilFinalised(String(empty.body['delay_id']));
      assert.deepEqual(await talk.state(alice, 'org.example.call', 'me'), { left: true });
      assert.deepEqual(await talk.state(alice, 'org.example.call'), { all: 'left' });
    });

    it('restarts, cancels or sends a delayed event for any client that knows its id, also without an access token', async () => {
      const delayId = await schedule(10_000);
      clock.advance(9_000);
      assert.deepEqual(await manage(delayId, 'restart'), { status: 200, body: {} });
      assert.equal((await readDelayedEvent(delayId)).running_since, clock.now());
      clock.advance(9_000);
      assert.equal((await readDelayedEvent(delayId)).finalised, undefined);
      assert.equal((await manage(delayId, 'cancel', bob)).status, 200);
      assert.equal((await readDelayedEvent(delayId)).finalised?.event_id, undefined);
      const before = await messages();
      clock.advance(20_000);
      assert.deepEqual(await messages(), before);
      assert.equal((await manage(delayId, 'cancel')).status, 200);
      assert.equal((await manage(delayId, 'send')).status, 409);
      assert.equal((await manage(delayId, 'restart')).status, 409);

      const other = await schedule(10_000);
      const inBody = await call(server, alice, 'POST', `${unstable}/delayed_events/${other}`, {
        action: 'send',
      });
      assert.equal(inBody.status, 200);
      const { event_id: eventId } = await waitUntilFinalised(other);
      assert.equal((await messages())[0], eventId);
      assert.equal((await manage(other, 'send')).status, 200);
      assert.equal((await manage(other, 'cancel')).status, 409);
      clock.advance(10_000);
      assert.equal((await messages())[0], eventId);
    });

    it('authorizes a delayed event when it is sent, and refuses it when its user has left the room', async () => {
      const delayId = await schedule(5_000, hello, bob);
      await talk.leave(bob);
      const refused = await manage(delayId, 'send');
      assert.deepEqual([refused.status, refused.body['errcode']], [403, 'M_FORBIDDEN']);
      clock.advance(5_000);
      const path = `${unstable}/delayed_events?status=finalised&delay_id=${delayId}`;
      type Failed = { error?: { errcode: string }; reason: string; outcome: string };
      const failed = await eventually('end of the delayed event', async () => {
        const { body } = await call(server, bob, 'GET', path);
        return (body['finalised'] as Failed[])[0];
      });
      assert.deepEqual(
        [failed.error?.errcode, failed.reason, failed.outcome],
        ['M_FORBIDDEN', 'error', 'cancel'],
      );
      assert.equal((await manage(delayId, 'cancel')).status, 200);
      await talk.join(bob);
    });

    it('lists the delayed events of a user in the order in which their delays end, and only to this user', async () => {
      const laterId = await schedule(9_000);
      const soonerId = await schedule(8_000);
      const list = async (user: TestUser, query = '') => {
        const { body } = await call(server, user, 'GET', `${unstable}/delayed_events${query}`);
        return body as {
          delayed_events: Record<string, unknown>[];
          scheduled: unknown[];
          finalised?: unknown[];
        };
      };
      const { delayed_events: events, scheduled } = await list(alice, '?status=scheduled');
      assert.deepEqual(
        events.map(({ delay_id: delayId }) => delayId),
        [soonerId, laterId],
      );
      assert.deepEqual(scheduled, events);
      const { content, room_id: roomId, type, ...times } = events[0]!;
      assert.deepEqual([content, roomId, type], [hello, talk.roomId, 'm.room.message']);
      assert.deepEqual([times['delay'], times['running_since']], [8_000, clock.now()]);
      assert.deepEqual([times['delay_ms'], times['delayed_since_ts']], [8_000, clock.now()]);
      const stable = await call(server, alice, 'GET', `v1/delayed_events/${soonerId}`);
      assert.deepEqual(stable, { status: 200, body: events[0]! });
      assert.deepEqual((await list(bob)).delayed_events, []);
      assert.equal((await call(server, bob, 'GET', `${unstable}/delayed_events/${soonerId}`)).status, 404);
      for (const delayId of [laterId, soonerId]) await manage(delayId, 'cancel');
      assert.deepEqual((await list(alice)).delayed_events, []);
      assert.ok((await list(alice)).finalised!.length >= 2);
    });

    it('schedules one event per transaction id, also when the request is repeated at another endpoint of MSC4140', async () => {
      const path = (version: string) =>
        `${version}/rooms/${encodeURIComponent(talk.roomId)}/delayed_event/m.room.message/once`;
      const body = { delay_ms: 1_000, content: hello };
      const first = await call(server, alice, 'PUT', path(unstable), body);
      const again = await call(server, alice, 'PUT', path('v3'), { delay: 1_000, content: hello });
      assert.equal(first.status, 200);
      assert.deepEqual(first.body, again.body);
      for (const other of [{}, { delay: 5_000, content: { a: 1 } }, { delay_ms: -1, content: hello }]) {
        assert.deepEqual((await call(server, alice, 'PUT', path('v3'), other)).body, first.body);
      }
      const older = delayedPath(2 * day, 'send/m.room.message/once');
      assert.deepEqual((await call(server, alice, 'PUT', older, { other: true })).body, first.body);
      const state = { delay: 1_000, state_key: 'key', content: { a: 1 } };
      const answer = await call(
        server,
        alice,
        'PUT',
        `${path('v3')}2`.replace('m.room.message', 'org.example'),
        state,
      );
      clock.advance(1_000);
      await waitUntilFinalised(String(first.body['delay_id']));
      await waitUntilFinalised(String(answer.body['delay_id']));
      assert.deepEqual(await talk.state(alice, 'org.example', 'key'), { a: 1 });
      assert.equal((await call(server, alice, 'PUT', `${path('v3')}3`, { content: hello })).status, 400);
    });

    it('rejects malformed requests for delayed events', async () => {
      for (const delay of [0, -1, 'soon']) {
        assert.equal((await call(server, alice, 'PUT', delayedPath(delay, 'send/m/x'), {})).status, 400);
      }
      const before = await messages();
      for (const place of ['send/m.room.message/child', 'state/org.example/child']) {
        const path = `${room()}/${place}?org.matrix.msc4140.parent_delay_id=x`;
        assert.equal((await call(server, alice, 'PUT', path, hello)).status, 400);
      }
      assert.deepEqual(await messages(), before);
      assert.equal((await manage('nothing', 'send')).status, 404);
      const delayId = await schedule(1_000);
      assert.equal((await manage(delayId, 'explode')).status, 404);
      const refused = await call(server, alice, 'POST', `${unstable}/delayed_events/${delayId}`, {
        action: 'explode',
      });
      assert.deepEqual([refused.status, refused.body['errcode']], [400, 'M_INVALID_PARAM']);
      assert.equal(
        (await call(server, alice, 'POST', `${unstable}/delayed_events/${delayId}`, {})).status,
        400,
      );
      await manage(delayId, 'cancel');
    });

    it('limits the number of scheduled events of a user to 100, and lists them all, also when a thousand events have ended', async () => {
      const database = await openDatabase(server.databaseOptions, { log: silentLogger });
      const columns =
        'delay_id, user_id, room_id, type, content, delay, since_ts, finalised_ts, outcome, reason';
      const ended = Array.from({ length: 1_000 }, (_, index) => [`ended${index}`, alice.userId, clock.now()]);
      await database.batch([
        {
          sql: `insert into delayed_events (${columns}) values (?, ?, '!room', 'm.x', '{}', 1, 0, ?, 'cancel', 'action')`,
          rows: ended,
        },
      ]);
      await database.close();
      const ids: string[] = [];
      for (let count = 0; count < 100; count++) ids.push(await schedule(3_600_000));
      const refused = await call(server, alice, 'PUT', delayedPath(1_000, 'send/m.room.message/more'), hello);
      assert.deepEqual([refused.status, refused.body['errcode']], [429, 'M_LIMIT_EXCEEDED']);
      assert.equal(refused.body['retry_after_ms'], 3_600_000);
      assert.equal(refused.retryAfter, '3600');
      const list = await call(server, alice, 'GET', `${unstable}/delayed_events`);
      const listed = new Set(
        [list.body['scheduled'], list.body['delayed_events']]
          .flatMap((some) => (some ?? []) as { delay_id: string }[])
          .map(({ delay_id }) => delay_id),
      );
      assert.ok(ids.every((id) => listed.has(id)));
      await manage(ids[0]!, 'cancel');
      await schedule(1_000);
    });

    it('refuses a delayed event with 413 M_TOO_LARGE when it is larger than an event may be', async () => {
      const body = { body: 'x'.repeat(65_536) };
      for (const [path, content] of [
        [delayedPath(1_000, 'send/m.room.message/large'), body],
        [`${room()}/delayed_event/m.room.message/large`, { delay: 1_000, content: body }],
      ] as const) {
        const answer = await call(server, bob, 'PUT', path, content);
        assert.deepEqual([answer.status, answer.body['errcode']], [413, 'M_TOO_LARGE'], path);
      }
    });

    it('refuses more than 1 MiB of scheduled events of a user, and lists about 1 MiB of events that have ended', async () => {
      const large = { body: 'x'.repeat(60_000) };
      const fill = async () => {
        const ids: string[] = [];
        for (let count = 0; count < 17; count++) ids.push(await schedule(3_600_000, large, bob));
        return ids;
      };
      const first = await fill();
      const refused = await call(server, bob, 'PUT', delayedPath(1_000, 'send/m.room.message/too'), large);
      assert.deepEqual([refused.status, refused.body['errcode']], [429, 'M_LIMIT_EXCEEDED']);
      for (const id of first) await manage(id, 'cancel', bob);
      const second = await fill();
      for (const id of second) await manage(id, 'cancel', bob);
      const { body } = await call(server, bob, 'GET', `${unstable}/delayed_events?status=finalised`);
      // The list ends with the event whose bytes make the sum exceed 1 MiB: the eighteenth event of 60,000 bytes.
      assert.equal((body['finalised'] as unknown[]).length, 18);
    });
  });

  /** Returns the answers of a server with these options to requests for delayed events. */
  const answersOf = async (
    config: ConfigurationOverrides,
    requests: readonly ('schedule' | 'by delayed_event path' | 'list')[],
    delay: number,
  ) => {
    const server = await startTestServer({ database: open.kind, config });
    try {
      const user = await server.register('alice');
      const { roomId } = await TestRoom.create(server, user);
      const answers: Answer[] = [];
      for (const [index, request] of requests.entries()) {
        const room = `rooms/${encodeURIComponent(roomId)}`;
        const send = `v3/${room}/send/m.room.message/${index}?org.matrix.msc4140.delay=${delay}`;
        const delayedEventPath = `v3/${room}/delayed_event/m.room.message/${index}`;
        if (request === 'list') answers.push(await call(server, user, 'GET', `${unstable}/delayed_events`));
        else if (request === 'schedule') answers.push(await call(server, user, 'PUT', send, hello));
        else
          answers.push(
            await call(server, user, 'PUT', delayedEventPath, { delay_ms: delay, content: hello }),
          );
      }
      return answers;
    } finally {
      await server.stop();
    }
  };

  it('rejects delays longer than the operator allows [option: max_event_delay_duration]', async () => {
    const outcomes = async (longest: number | null, delay: number) => {
      const [first, second] = await answersOf(
        withMaxDelay(longest),
        ['schedule', 'by delayed_event path'],
        delay,
      );
      const { errcode, ...rest } = first!.body;
      const details = ['errcode', 'max_delay'].map((key) => rest[`org.matrix.msc4140.${key}`]);
      return [first!.status, errcode, ...details, second!.status, second!.body['errcode']];
    };
    const forbidden = [403, 'M_FORBIDDEN'];
    assert.deepEqual(await outcomes(null, 1_000), [
      ...[400, 'M_UNKNOWN', 'M_MAX_DELAY_UNSUPPORTED', undefined],
      ...forbidden,
    ]);
    assert.deepEqual(await outcomes(5_000, 5_001), [
      400,
      'M_UNKNOWN',
      'M_MAX_DELAY_EXCEEDED',
      5_000,
      ...forbidden,
    ]);
    assert.deepEqual(await outcomes(5_000, 5_000), [200, undefined, undefined, undefined, 200, undefined]);
  });

  it('limits the rate of requests that list delayed events, and not of requests that schedule them [option: rc_delayed_event_mgmt]', async () => {
    const rc_delayed_event_mgmt = { per_second: 0.001, burst_count: 1 };
    const config = { ...withMaxDelay(day), rateLimits: { rc_delayed_event_mgmt } };
    const answers = await answersOf(config, ['schedule', 'schedule', 'list', 'list'], 1_000);
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 200, 200, 429],
    );
  });
});
