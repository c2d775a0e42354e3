import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { BuiltEvent, JsonObject } from '../../src/protocol/index.ts';
import { eventually } from '../clients/eventually.ts';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import { ScriptedMember } from '../support/other-servers/scripted-member.ts';
import type { ScriptedServer } from '../support/other-servers/scripted-server.ts';
import { SeveralServers } from '../support/other-servers/several-servers.ts';
import { type ClientEventJson, enc, type TestClient } from '../support/users/test-client.ts';

const mallory = '@mallory:evil.test';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('redactions from another server', () => {
    let several: SeveralServers;
    let evil: ScriptedServer;
    let anna: TestClient;
    before(async () => {
      ({ several, peer: evil, anna } = await SeveralServers.withScriptedServer(kind, 'evil.test'));
    });
    after(() => several.stop());

    async function openRoom(room_version: string) {
      const roomId = await anna.createRoom({ preset: 'public_chat', room_version });
      const remote = await ScriptedMember.join(evil, 'a.test', roomId, mallory);
      return { roomId, remote, path: `/rooms/${enc(roomId)}` };
    }
    const redactionOf = (remote: ScriptedMember, redacts: string, content: JsonObject = {}) =>
      remote.build({ type: 'm.room.redaction', content }, { redacts });

    /** Sends an event, which becomes the previous event of the next one. @returns its id */
    async function send(remote: ScriptedMember, built: BuiltEvent): Promise<string> {
      assert.deepEqual(await remote.send(built.event.pdu), { [built.event.eventId]: {} });
      remote.advanceTo(built);
      return built.event.eventId;
    }

    const canRead = async (roomId: string, eventId: string) =>
      (await anna.call('GET', `/rooms/${enc(roomId)}/event/${enc(eventId)}`)).status === 200;
    const waitForEvent = (roomId: string, eventId: string) =>
      eventually(eventId, () => canRead(roomId, eventId));

    const slidingSync = async (roomId: string) => {
      const body = { room_subscriptions: { [roomId]: { timeline_limit: 50, required_state: [] } } };
      const path = '/_matrix/client/unstable/org.matrix.simplified_msc3575/sync';
      const { status, raw } = await anna.request('POST', path, body);
      assert.equal(status, 200, raw);
      return raw;
    };

    /**
     * Returns the names of the responses to clients that contain an event id.
     * @param near id of the event whose context and relations are requested
     * @param since sync token from before the event
     */
    async function responsesWith(roomId: string, eventId: string, near: string, since: string) {
      const path = `/rooms/${enc(roomId)}`;
      const raw = async (where: string, query: Record<string, string | number> = {}) => {
        const answer = await anna.call('GET', where, undefined, query);
        return answer.raw;
      };
      const hour = 3_600_000;
      const responses: Record<string, string> = {
        'initial sync': await raw('/sync'),
        'incremental sync': await raw('/sync', { since }),
        'sliding sync': await slidingSync(roomId),
        'event stream': await raw('/events', { from: since, timeout: 0, room_id: roomId }),
        'initialSync of the room': await raw(`${path}/initialSync`),
        'messages backward': await raw(`${path}/messages`, { dir: 'b', limit: 100 }),
        'messages forward': await raw(`${path}/messages`, { dir: 'f', limit: 100 }),
        context: await raw(`${path}/context/${enc(near)}`, { limit: 20 }),
        event: await raw(`${path}/event/${enc(eventId)}`),
        relations: (await anna.request('GET', `/_matrix/client/v1${path}/relations/${enc(near)}`, undefined))
          .raw,
        notifications: await raw('/notifications'),
        timestamp_to_event: (
          await anna.request('GET', `/_matrix/client/v1${path}/timestamp_to_event`, undefined, {
            dir: 'f',
            ts: Date.now() + hour - 1,
          })
        ).raw,
        search: (
          await anna.call('POST', '/search', {
            search_categories: {
              room_events: {
                search_term: 'target',
                filter: { rooms: [roomId] },
                event_context: { before_limit: 10, after_limit: 10 },
              },
            },
          })
        ).raw,
      };
      return Object.keys(responses).filter((name) => responses[name]?.includes(eventId));
    }

    for (const version of ['11', '1']) {
      it(`hides remote redactions that take no effect from every response to clients, in room version ${version}`, async () => {
        const { roomId, remote, path } = await openRoom(version);
        await anna.do('PUT', `/pushrules/global/room/${enc(roomId)}`, { actions: ['notify'] });
        const target = await anna.say(roomId, 'the target');
        await eventually('the target', async () => remote.latest.eventId === target);
        const { next_batch: since } = (await anna.do('GET', '/sync')) as { next_batch: string };
        const relation = { 'm.relates_to': { rel_type: 'm.reference', event_id: target } };
        const redaction = remote.build(
          { type: 'm.room.redaction', content: relation },
          { redacts: target, originServerTs: Date.now() + 3_600_000 },
        );
        await remote.send(redaction.event.pdu);
        if (version === '11') remote.advanceTo(redaction);
        const next = await remote.say('after it');
        await waitForEvent(roomId, next);
        assert.deepEqual(await responsesWith(roomId, redaction.event.eventId, target, since), []);
        const event = await anna.do('GET', `${path}/event/${enc(target)}`);
        assert.deepEqual(event['content'], { msgtype: 'm.text', body: 'the target' });
        const sync = await anna.do('GET', '/sync');
        const { join } = sync['rooms'] as { join: Record<string, Record<string, JsonObject>> };
        assert.equal(join[roomId]?.['unread_notifications']?.['notification_count'], 1);
        // The redaction is part of the event graph, which other servers must be able to follow.
        const { status, body } = await evil.request(
          'a.test',
          'GET',
          `/_matrix/federation/v1/event/${enc(next)}`,
        );
        assert.equal(status, 200, JSON.stringify(body));
        if (version !== '11') return;
        const served = await evil.request(
          'a.test',
          'GET',
          `/_matrix/federation/v1/event/${enc(redaction.event.eventId)}`,
        );
        assert.deepEqual((served.body['pdus'] as JsonObject[])[0]?.['hashes'], redaction.event.pdu['hashes']);
        const backfill = await evil.request(
          'a.test',
          'GET',
          `/_matrix/federation/v1/backfill/${enc(roomId)}?limit=10&v=${enc(next)}`,
        );
        assert.match(JSON.stringify(backfill.body['pdus']), new RegExp(String(redaction.event.pdu['depth'])));
        assert.ok(
          (backfill.body['pdus'] as JsonObject[]).some(({ type }) => type === 'm.room.redaction'),
          'the redaction is served by backfill',
        );
      });
    }

    for (const version of ['11', '1']) {
      it(`shows a remote redaction to clients once the event that it redacts has arrived, in room version ${version}`, async () => {
        const { roomId, remote, path } = await openRoom(version);
        const start = remote.latest;
        const withheld = remote.message('a secret target');
        const { next_batch: since } = (await anna.do('GET', '/sync')) as { next_batch: string };
        const redaction = await send(remote, redactionOf(remote, withheld.event.eventId));
        const near = await remote.say('after it');
        await waitForEvent(roomId, near);
        assert.deepEqual(await responsesWith(roomId, redaction, near, since), []);
        assert.equal(withheld.event.prevEventIds[0], start.eventId);
        await remote.send(withheld.event.pdu);
        await waitForEvent(roomId, withheld.event.eventId);
        assert.deepEqual(await responsesWith(roomId, redaction, near, since), [
          'initial sync',
          'incremental sync',
          'sliding sync',
          'event stream',
          'initialSync of the room',
          'messages backward',
          'messages forward',
          'context',
          'event',
        ]);
        const { chunk } = await anna.do('GET', `${path}/messages`, undefined, { dir: 'b', limit: 100 });
        const target = (chunk as ClientEventJson[]).find(
          ({ event_id }) => event_id === withheld.event.eventId,
        );
        assert.deepEqual(target?.content, {});
        const because = target?.unsigned?.['redacted_because'] as { event_id: string } | undefined;
        assert.equal(because?.event_id, redaction);
      });
    }

    it('hides remote redactions from every response to clients while the event that they redact is unknown or in another room', async () => {
      const { roomId, remote, path } = await openRoom('11');
      await anna.do('PUT', `${path}/state/m.room.power_levels`, {
        users: { [anna.id]: 100, [mallory]: 50 },
        redact: 50,
      });
      await eventually('the power levels', async () => remote.latest.type === 'm.room.power_levels');
      const { next_batch: since } = (await anna.do('GET', '/sync')) as { next_batch: string };
      const unknown = '$not-yet-known-0123456789abcdefghijklmnopqr';
      const pending = await send(remote, redactionOf(remote, unknown));
      const otherRoom = await openRoom('11');
      const idOfOtherRoom = await anna.say(otherRoom.roomId, 'in another room');
      const acrossRooms = await send(remote, redactionOf(remote, idOfOtherRoom));
      const near = await remote.say('after it');
      await waitForEvent(roomId, near);
      for (const redaction of [pending, acrossRooms]) {
        assert.deepEqual(await responsesWith(roomId, redaction, near, since), []);
      }
      const event = await anna.do('GET', `${otherRoom.path}/event/${enc(idOfOtherRoom)}`);
      assert.deepEqual(event['content'], { msgtype: 'm.text', body: 'in another room' });
    });

    it('removes a redacted reply from its thread, also when the redaction precedes it in a transaction, and when the redaction itself is redacted', async () => {
      const { roomId, remote, path } = await openRoom('11');
      const root = await anna.say(roomId, 'the root');
      await eventually('the root', async () => remote.latest.eventId === root);
      const reply = (body: string) => {
        const relation = { 'm.relates_to': { rel_type: 'm.thread', event_id: root } };
        return remote.build({ type: 'm.room.message', content: { msgtype: 'm.text', body, ...relation } });
      };
      const kept = await send(remote, reply('kept'));
      for (const isFirst of [true, false]) {
        const target = reply(`redacted ${isFirst}`);
        remote.advanceTo(target);
        const redaction = redactionOf(remote, target.event.eventId);
        const pdus = [target.event.pdu, redaction.event.pdu];
        await remote.send(...(isFirst ? pdus : pdus.toReversed()));
        remote.advanceTo(redaction);
      }
      // The redaction arrives after the event that redacts it.
      const target = reply('redacted by a redacted event');
      await send(remote, target);
      const redaction = redactionOf(remote, target.event.eventId);
      const ofRedaction = redactionOf(remote, redaction.event.eventId);
      await remote.send(ofRedaction.event.pdu);
      await remote.send(redaction.event.pdu);
      remote.advanceTo(ofRedaction);
      await waitForEvent(roomId, await remote.say('after them'));
      await waitForEvent(roomId, redaction.event.eventId);
      const children = `/_matrix/client/v1${path}/relations/${enc(root)}/m.thread`;
      const { body } = await anna.request('GET', children, undefined);
      assert.deepEqual(
        (body['chunk'] as ClientEventJson[]).map(({ event_id }) => event_id),
        [kept],
      );
      const shown = await anna.do('GET', `${path}/event/${enc(root)}`);
      const relations = (shown['unsigned'] as JsonObject)['m.relations'] as JsonObject;
      assert.equal((relations['m.thread'] as JsonObject)['count'], 1);
    });

    it('shows a remote redaction to clients when the event that it redacts is already redacted', async () => {
      const { roomId, remote } = await openRoom('11');
      const messageId = await remote.say('twice redacted');
      const first = await send(remote, redactionOf(remote, messageId));
      const second = await send(remote, redactionOf(remote, messageId, { reason: 'again' }));
      await waitForEvent(roomId, second);
      assert.ok(await canRead(roomId, first));
    });

    it('shows clients a remote redaction that redacts itself, with its content, in room version 1', async () => {
      const { roomId, remote, path } = await openRoom('1');
      const eventId = '$names-itself:evil.test';
      const draft = { type: 'm.room.redaction', content: { reason: 'none' } };
      await send(remote, remote.build(draft, { eventId, redacts: eventId }));
      await waitForEvent(roomId, eventId);
      const shown = await anna.do('GET', `${path}/event/${enc(eventId)}`);
      assert.deepEqual(shown['content'], { reason: 'none', redacts: eventId });
    });
  });
});
