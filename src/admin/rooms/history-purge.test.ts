import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { eventually } from '../../../test/clients/eventually.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { type FederatedServer, SeveralServers } from '../../../test/support/other-servers/several-servers.ts';
import { type ClientEventJson, enc, type TestClient } from '../../../test/support/users/test-client.ts';
import { Administration } from '../test/administration.ts';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('purges of history by the admin API', () => {
    let several: SeveralServers;
    let a: FederatedServer;
    let c: FederatedServer;
    let admin: Administration;
    let anna: TestClient;
    let ben: TestClient;
    before(async () => {
      const opened = await SeveralServers.open(kind, ['a.test', 'b.test', 'c.test']);
      ({ several } = opened);
      const [, b] = opened.servers;
      [a, , c] = opened.servers;
      admin = await Administration.open(a);
      anna = await a.registerClient('anna');
      ben = await b.registerClient('ben');
    });
    after(() => several.stop());

    const statusOf = (id: unknown) => admin.do('GET', `/v1/purge_history_status/${String(id)}`);

    /**
     * Starts a purge and waits for its end.
     * @param event the last part of the path: a slash and an event id, or empty
     * @param meanwhile is called after the start
     */
    async function purge(
      roomId: string,
      event: string,
      body: object = {},
      meanwhile: () => Promise<void> = async () => undefined,
    ): Promise<void> {
      const { purge_id: id } = await admin.do('POST', `/v1/purge_history/${enc(roomId)}${event}`, body);
      assert.equal(typeof id, 'string');
      await meanwhile();
      await eventually('the end of the purge', async () => {
        const { status, error } = await statusOf(id);
        assert.notEqual(status, 'failed', String(error));
        return status === 'complete';
      });
    }

    const upTo = (eventId: string) => `/${enc(eventId)}`;

    /** Whether each event is stored on the server of the administrator. */
    const stored = (...eventIds: string[]) =>
      Promise.all(
        eventIds.map(async (id) => (await admin.call('GET', `/v1/fetch_event/${enc(id)}`)).status === 200),
      );

    /** Returns the texts of the messages in a room that the user can read. */
    async function messages(user: TestClient, roomId: string): Promise<string[]> {
      const bodies: string[] = [];
      for (let from: string | undefined; ; ) {
        const query: Record<string, string> = { dir: 'b', limit: '7', ...(from !== undefined && { from }) };
        const page = await user.do('GET', `/rooms/${enc(roomId)}/messages`, undefined, query);
        for (const { content } of page['chunk'] as readonly ClientEventJson[])
          if (typeof content['body'] === 'string') bodies.unshift(content['body']);
        from = page['end'] as string | undefined;
        if (from === undefined) return bodies;
      }
    }

    /** Sends messages with the texts `${name} 1`, `${name} 2`, … @returns their ids */
    async function say(user: TestClient, roomId: string, name: string, count: number): Promise<string[]> {
      const ids: string[] = [];
      for (let index = 1; index <= count; index++) ids.push(await user.say(roomId, `${name} ${index}`));
      return ids;
    }

    it('deletes local messages before an event from all APIs only with delete_local_events: true, keeps the state, and leaves the room writable', async () => {
      const roomId = await anna.createRoom();
      const [first, second] = await say(anna, roomId, 'old', 2);
      await anna.setState(roomId, 'm.room.topic', { topic: 'first topic' });
      const reply = await anna.send(roomId, 'm.room.message', {
        msgtype: 'm.text',
        body: 'in a thread',
        'm.relates_to': { rel_type: 'm.thread', event_id: first },
      });
      const redaction = await anna.redact(roomId, second!);
      const stateOf = async () => {
        const events = (await anna.call('GET', `/rooms/${enc(roomId)}/state`)).body as unknown;
        return (events as readonly ClientEventJson[]).map(({ event_id }) => event_id).sort();
      };
      const state = await stateOf();
      assert.ok(state.length > 5);
      const [bound] = await say(anna, roomId, 'new', 2);
      await purge(roomId, upTo(bound!));
      assert.deepEqual(await stored(first!, second!, reply, redaction, bound!), [
        true,
        true,
        true,
        true,
        true,
      ]);
      await purge(roomId, upTo(bound!), { delete_local_events: true });
      assert.deepEqual(await stored(first!, second!, reply, redaction, bound!), [
        false,
        false,
        false,
        false,
        true,
      ]);
      const check = async () => {
        assert.deepEqual(await messages(anna, roomId), ['new 1', 'new 2']);
        assert.deepEqual(await stateOf(), state);
        const { rooms } = await anna.sync();
        assert.doesNotMatch(JSON.stringify(rooms?.join?.[roomId]), /"old \d"|in a thread/);
        for (const path of ['context', 'event', 'relations'])
          assert.equal(
            (await anna.call('GET', `/rooms/${enc(roomId)}/${path}/${enc(first!)}`)).status,
            404,
            path,
          );
        const search = { search_categories: { room_events: { search_term: 'old' } } };
        const { search_categories: found } = await anna.do('POST', '/search', search);
        assert.doesNotMatch(JSON.stringify(found), /"old \d"/);
      };
      await check();
      await a.restart();
      await check();
      await anna.say(roomId, 'later');
      assert.deepEqual(await messages(anna, roomId), ['new 1', 'new 2', 'later']);
    });

    it('deletes the messages before a time, also when the server restarts meanwhile, but never forward extremities', async () => {
      const roomId = await anna.createRoom();
      // More messages than one transaction deletes.
      const ids = await say(anna, roomId, 'message', 250);
      const body = { purge_up_to_ts: Date.now() + 60_000, delete_local_events: true };
      await purge(roomId, '', body, () => a.restart());
      assert.deepEqual(await stored(ids[0]!, ids.at(-2)!, ids.at(-1)!), [false, false, true]);
      assert.deepEqual(await messages(anna, roomId), ['message 250']);
      const early = { ...body, purge_up_to_ts: 1_000 };
      assert.deepEqual(await admin.refused('POST', `/v1/purge_history/${enc(roomId)}`, early), [
        404,
        'M_NOT_FOUND',
      ]);
      await anna.setState(roomId, 'm.room.name', { name: 'Still writable' });
    });

    it('keeps a state event and its redaction', async () => {
      const roomId = await anna.createRoom();
      const topic = await anna.setState(roomId, 'm.room.topic', { topic: 'secret' });
      const redaction = await anna.redact(roomId, topic);
      const [old, bound] = await say(anna, roomId, 'message', 2);
      await purge(roomId, upTo(bound!), { delete_local_events: true });
      assert.deepEqual(await stored(topic, redaction, old!), [true, true, false]);
      const { unsigned } = (await anna.do('GET', `/rooms/${enc(roomId)}/event/${enc(topic)}`)) as {
        unsigned: { redacted_because: { event_id: string } };
      };
      assert.equal(unsigned.redacted_because.event_id, redaction);
    });

    it('lets other servers join and send after a purge, and backfills the deleted messages from them when users read the history', async () => {
      const roomId = await anna.createRoom();
      await say(anna, roomId, 'anna', 3);
      await ben.do('POST', `/join/${enc(roomId)}`, {}, { server_name: 'a.test' });
      const old = await say(ben, roomId, 'ben', 30);
      const bound = await ben.say(roomId, 'bound');
      await eventually('all messages on a', async () => (await stored(bound))[0]);
      await purge(roomId, upTo(bound));
      assert.deepEqual(new Set(await stored(...old)), new Set([false]));
      // The room continues from the events that are left, and another server joins through this one.
      await anna.say(roomId, 'after the purge');
      const cat = await c.registerClient('cat');
      await cat.do('POST', `/join/${enc(roomId)}`, {}, { server_name: 'a.test' });
      await cat.say(roomId, 'hello from cat');
      await eventually(
        'the message on both servers',
        async () =>
          (await messages(ben, roomId)).includes('hello from cat') &&
          (await messages(anna, roomId)).includes('hello from cat'),
      );
      const members = async (user: TestClient) =>
        Object.keys(
          (await user.do('GET', `/rooms/${enc(roomId)}/joined_members`))['joined'] as object,
        ).sort();
      const memberIds = [anna.id, ben.id, cat.id].sort();
      for (const user of [anna, ben, cat]) assert.deepEqual(await members(user), memberIds);
      // Anna's server backfills the deleted messages from Ben's server, which still has them.
      const whole = await messages(ben, roomId);
      assert.ok(whole.includes('ben 1'));
      await eventually('the whole history for anna', async () =>
        isDeepStrictEqual(await messages(anna, roomId), whole),
      );
      // Another server that joins later receives the remaining messages, from the first one on.
      const purgedRoom = await anna.createRoom();
      await say(anna, purgedRoom, 'deleted', 3);
      const first = await anna.say(purgedRoom, 'first');
      await anna.say(purgedRoom, 'second');
      await purge(purgedRoom, upTo(first), { delete_local_events: true });
      await cat.do('POST', `/join/${enc(purgedRoom)}`, {}, { server_name: 'a.test' });
      await eventually('the rest of the history for cat', async () => {
        return (await messages(cat, purgedRoom)).join() === 'first,second';
      });
    });

    it('responds 404 to purges of unknown rooms or up to unknown events, and 400 to purges up to events of other rooms or without a bound', async () => {
      const roomId = await anna.createRoom();
      const other = await anna.say(await anna.createRoom(), 'elsewhere');
      const refusalOf = (path: string, body: object = {}) =>
        admin.refused('POST', `/v1/purge_history/${path}`, body);
      assert.deepEqual(await refusalOf(`${enc('!unknown:a.test')}${upTo(other)}`), [404, 'M_NOT_FOUND']);
      assert.deepEqual(await refusalOf(`${enc(roomId)}/%24unknown`), [404, 'M_NOT_FOUND']);
      assert.deepEqual(await refusalOf(`${enc(roomId)}${upTo(other)}`), [400, 'M_INVALID_PARAM']);
      assert.deepEqual(await refusalOf(enc(roomId)), [400, 'M_BAD_JSON']);
      for (const purge_up_to_ts of [1e300, -1e300])
        assert.deepEqual(await refusalOf(enc(roomId), { purge_up_to_ts }), [400, 'M_BAD_JSON']);
      assert.deepEqual(await admin.refused('GET', '/v1/purge_history_status/unknown'), [404, 'M_NOT_FOUND']);
    });
  });
});
