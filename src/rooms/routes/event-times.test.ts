import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { alice, bob, carol, RoomsUnderTest, RoutesUnderTest } from '../../../test/support/rooms/rooms.ts';
import { sendingRoutes } from './sending-routes.ts';

/** The token of an application service that acts as Alice. */
const bridge = `bridge:${alice}`;
/** A time long ago, in milliseconds since the epoch. */
const oldTimestamp = 1_000;

forSelectedDatabases(import.meta.url, (open) => {
  describe('origin_server_ts of a sent event', () => {
    let fixture: RoomsUnderTest;
    let http: RoutesUnderTest;
    let roomId: string;
    before(async () => {
      fixture = await RoomsUnderTest.open(open);
      const delayed = { schedule: async () => 'not scheduled here' };
      http = await RoutesUnderTest.start(sendingRoutes(fixture.rooms.sending, delayed), fixture.clock);
      roomId = await fixture.room(alice, bob);
    });
    after(() => http.stop());

    let transactions = 0;
    const sendRequest = (user: string, path: string, body: object, ts?: number) => {
      const url = `/rooms/${encodeURIComponent(roomId)}${path}`;
      return http.call(user, 'PUT', ts === undefined ? url : `${url}?ts=${ts}`, body);
    };
    const sendPath = (type: string) => `/send/${type}/t${transactions++}`;
    const timeOf = async ({ status, body }: Awaited<ReturnType<typeof sendRequest>>) => {
      assert.equal(status, 200, JSON.stringify(body));
      return (await fixture.engine.events.getById(String(body['event_id'])))?.event.originServerTs;
    };
    const message = { msgtype: 'm.text', body: 'hello' };

    it('uses the ts of an application service as origin_server_ts of messages, redactions and state events', async () => {
      const sent = await sendRequest(bridge, sendPath('m.room.message'), message, oldTimestamp);
      assert.equal(await timeOf(sent), oldTimestamp);
      const redaction = { redacts: sent.body['event_id'] };
      assert.equal(
        await timeOf(await sendRequest(bridge, sendPath('m.room.redaction'), redaction, oldTimestamp + 1)),
        oldTimestamp + 1,
      );
      assert.equal(
        await timeOf(await sendRequest(bridge, '/state/m.room.topic', { topic: 'x' }, oldTimestamp + 2)),
        oldTimestamp + 2,
      );
      assert.equal(await timeOf(await sendRequest(bridge, '/state/org.example.x/key', { x: 1 }, 0)), 0);
    });

    it('uses the ts of an application service as origin_server_ts of all membership changes', async () => {
      const changes: [user: string, target: string, membership: string][] = [
        [bridge, carol, 'invite'],
        [`bridge:${carol}`, carol, 'join'],
        [`bridge:${carol}`, carol, 'leave'],
        [bridge, carol, 'ban'],
        [bridge, carol, 'leave'],
        [`bridge:${carol}`, carol, 'join'],
        [bridge, carol, 'leave'],
      ];
      for (const [index, [user, target, membership]] of changes.entries()) {
        const path = `/state/m.room.member/${encodeURIComponent(target)}`;
        assert.equal(
          await timeOf(await sendRequest(user, path, { membership }, oldTimestamp + index)),
          oldTimestamp + index,
          membership,
        );
      }
      await sendRequest(alice, '/state/m.room.join_rules', { join_rule: 'knock' });
      const path = `/state/m.room.member/${encodeURIComponent(carol)}`;
      const knock = await sendRequest(`bridge:${carol}`, path, { membership: 'knock' }, oldTimestamp);
      assert.equal(await timeOf(knock), oldTimestamp);
    });

    it('uses the current time as origin_server_ts for requests of other users, and for requests of an application service without ts', async () => {
      const now = fixture.clock.now();
      assert.equal(
        await timeOf(await sendRequest(bob, sendPath('m.room.message'), message, oldTimestamp)),
        now,
      );
      assert.equal(
        await timeOf(await sendRequest(alice, '/state/m.room.topic', { topic: 'y' }, oldTimestamp)),
        now,
      );
      assert.equal(await timeOf(await sendRequest(bridge, sendPath('m.room.message'), message)), now);
      assert.equal(await timeOf(await sendRequest(bridge, '/state/m.room.topic', { topic: 'z' })), now);
    });

    it('answers 400 M_INVALID_PARAM to a ts that is not a non-negative safe integer', async () => {
      for (const ts of [-1, 2 ** 53, 1.5]) {
        for (const path of [sendPath('m.room.message'), '/state/m.room.topic']) {
          const { status, body } = await sendRequest(bridge, path, message, ts);
          assert.deepEqual([status, body['errcode']], [400, 'M_INVALID_PARAM'], `${path} ${ts}`);
        }
      }
    });
  });
});
