import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { eventually } from '../clients/eventually.ts';
import { manualClock } from '../support/clocks/manual-clock.ts';
import { openContents } from '../support/databases/database-contents.ts';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import { type PduResults, ScriptedMember } from '../support/other-servers/scripted-member.ts';
import { SeveralServers } from '../support/other-servers/several-servers.ts';
import { type ClientEventJson, enc, type TestClient } from '../support/users/test-client.ts';

const hour = 3_600_000;
const day = 24 * hour;

const retention = {
  enabled: true,
  default_policy: { min_lifetime: null, max_lifetime: null },
  allowed_lifetime_min: null,
  allowed_lifetime_max: null,
  purge_jobs: null,
};

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('retention of messages in rooms with other servers', () => {
    let several: SeveralServers;
    /** Advances the manual clock of a test as the time of the machine passes. */
    let ticking: NodeJS.Timeout | undefined;
    afterEach(async () => {
      await several.stop();
      clearInterval(ticking);
    });

    const messages = async (user: TestClient, roomId: string) => {
      const query = { dir: 'b', limit: 100 };
      const { chunk } = await user.do('GET', `/rooms/${enc(roomId)}/messages`, undefined, query);
      return (chunk as ClientEventJson[])
        .toReversed()
        .map(({ content }) => content['body'])
        .filter((body) => body !== undefined);
    };

    it('ignores expired messages from other servers, returns expired messages without content in backfill and get_missing_events, and not at all elsewhere', async () => {
      const opened = await SeveralServers.withScriptedServer(kind, 'b.test', {
        config: { rooms: { retention } },
      });
      ({ several } = opened);
      const { anna, peer } = opened;
      const roomId = await anna.createRoom({ preset: 'public_chat', room_version: '11' });
      const ben = await ScriptedMember.join(peer, 'a.test', roomId, '@ben:b.test');
      await anna.setState(roomId, 'm.room.retention', { max_lifetime: hour });
      await eventually('the policy', () => ben.received.some(({ type }) => type === 'm.room.retention'));
      const old = ben.message('old', { originServerTs: Date.now() - 2 * hour });
      ben.advanceTo(old);
      const fresh = ben.message('fresh');
      ben.advanceTo(fresh);
      const pdus = [old.event.pdu, fresh.event.pdu];
      const results = (await ben.transaction({ pdus })).body['pdus'] as PduResults;
      assert.deepEqual(results, { [old.event.eventId]: {}, [fresh.event.eventId]: {} });
      await eventually('the fresh message', async () => (await messages(anna, roomId)).includes('fresh'));
      assert.deepEqual(await messages(anna, roomId), ['fresh']);
      const federation = '/_matrix/federation/v1';
      const requestFromServer = (path: string) => peer.request('a.test', 'GET', `${federation}${path}`);
      assert.equal((await requestFromServer(`/event/${enc(old.event.eventId)}`)).status, 404);
      assert.equal((await requestFromServer(`/event/${enc(fresh.event.eventId)}`)).status, 200);
      const nearest = (ts: number) => requestFromServer(`/timestamp_to_event/${enc(roomId)}?ts=${ts}&dir=f`);
      const sentAt = fresh.event.originServerTs;
      assert.equal((await nearest(sentAt)).body['event_id'], fresh.event.eventId);
      const policy = await anna.setState(roomId, 'm.room.retention', { max_lifetime: 0 });
      assert.notEqual((await nearest(sentAt)).body['event_id'], fresh.event.eventId);
      assert.equal((await requestFromServer(`/event/${enc(fresh.event.eventId)}`)).status, 404);
      const backfill = await requestFromServer(`/backfill/${enc(roomId)}?v=${enc(policy)}&limit=10`);
      assert.equal(backfill.status, 200);
      const backfilled = JSON.stringify(backfill.body);
      const gap = { earliest_events: [old.event.eventId], latest_events: [policy], limit: 10 };
      const missingEvents = await peer.request(
        'a.test',
        'POST',
        `${federation}/get_missing_events/${enc(roomId)}`,
        gap,
      );
      assert.match(JSON.stringify(missingEvents.body), /m\.room\.message/);
      assert.doesNotMatch(JSON.stringify(missingEvents.body), /"body"/);
      // The events themselves are sent without content, so that the event graph of the other server has no gap.
      assert.match(backfilled, /m\.room\.message/);
      assert.doesNotMatch(backfilled, /"body"/);
    });

    it('does not store a deleted message that is received again, and backfills it when the policy of the room is removed', async () => {
      const clock = manualClock(Date.now());
      ticking = setInterval(() => clock.advance(5), 5);
      const opened = await SeveralServers.withScriptedServer(kind, 'b.test', {
        clock,
        config: { rooms: { retention } },
      });
      ({ several } = opened);
      const { a, anna, peer } = opened;
      const roomId = await anna.createRoom({
        preset: 'public_chat',
        room_version: '11',
        initial_state: [{ type: 'm.room.retention', content: { max_lifetime: hour } }],
      });
      const ben = await ScriptedMember.join(peer, 'a.test', roomId, '@ben:b.test');
      const old = ben.message('old');
      peer.on('GET /_matrix/federation/v1/backfill/', () => ({ pdus: [old.event.pdu] }));
      await ben.send(old.event.pdu);
      ben.advanceTo(old);
      await ben.say('next');
      await eventually('the next message', async () => (await messages(anna, roomId)).includes('next'));
      const isOldEventStored = async () => {
        const contents = await openContents(a.databaseOptions);
        const events = await contents.rows('events').finally(() => contents.close());
        return events.some(({ event_id }) => event_id === old.event.eventId);
      };
      clock.advance(day);
      await eventually('the deletion', async () => !(await isOldEventStored()));
      assert.deepEqual(await ben.send(old.event.pdu), { [old.event.eventId]: {} });
      await anna.say(roomId, 'new');
      assert.equal(await isOldEventStored(), false);
      await anna.setState(roomId, 'm.room.retention', {});
      await eventually('the old message', async () => {
        // After an attempt to backfill that was too early, the server waits before the next one.
        clock.advance(10 * 60_000);
        return (await messages(anna, roomId)).includes('old');
      });
    });

    it('accepts a join and a message from another server after expired messages were deleted, and backfills the deleted messages when the policy of the room is removed', async () => {
      const clock = manualClock(Date.now());
      ticking = setInterval(() => clock.advance(5), 5);
      several = new SeveralServers(kind);
      const a = await several.homeserver('a.test', { clock, config: { rooms: { retention } } });
      const b = await several.homeserver('b.test', { clock });
      const [anna, ben] = [await a.registerClient('anna'), await b.registerClient('ben')];
      const roomId = await anna.createRoom({
        preset: 'public_chat',
        initial_state: [{ type: 'm.room.retention', content: { max_lifetime: hour } }],
      });
      await ben.do('POST', `/join/${enc(roomId)}`, {}, { server_name: 'a.test' });
      const waitForMessage = (user: TestClient, body: string) =>
        eventually(body, async () => (await messages(user, roomId)).includes(body));
      for (const body of ['old 1', 'old 2']) await ben.say(roomId, body);
      await waitForMessage(anna, 'old 2');
      clock.advance(day);
      await eventually('the deletion', async () => {
        const contents = await openContents(a.databaseOptions);
        const events = await contents.rows('events').finally(() => contents.close());
        return !events.some(({ json }) => String(json).includes('old 1'));
      });
      await anna.say(roomId, 'new');
      await waitForMessage(ben, 'new');
      // Ben's server has no retention and still has the messages, but Anna's server does not store them again.
      assert.deepEqual(await messages(anna, roomId), ['new']);
      const eve = await b.registerClient('eve');
      await eve.do('POST', `/join/${enc(roomId)}`, {}, { server_name: 'a.test' });
      await eve.say(roomId, 'hello from eve');
      await waitForMessage(anna, 'hello from eve');
      await anna.setState(roomId, 'm.room.retention', {});
      await eventually('old 1', async () => {
        // After an attempt to backfill that was too early, the server waits before the next one.
        clock.advance(10 * 60_000);
        return (await messages(anna, roomId)).includes('old 1');
      });
      assert.deepEqual(await messages(anna, roomId), ['old 1', 'old 2', 'new', 'hello from eve']);
    });
  });
});
