import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { BuiltEvent, JsonObject } from '../../src/protocol/index.ts';
import { eventually } from '../clients/eventually.ts';
import { forServerDatabases } from '../support/databases/databases.ts';
import { ScriptedMember } from '../support/other-servers/scripted-member.ts';
import type { ScriptedServer } from '../support/other-servers/scripted-server.ts';
import { SeveralServers } from '../support/other-servers/several-servers.ts';
import { type ClientEventJson, enc, type TestClient } from '../support/users/test-client.ts';

const mallory = '@mallory:evil.test';

forServerDatabases(import.meta.url, ({ kind }) => {
  describe('redactions from another server', () => {
    let several: SeveralServers;
    let evil: ScriptedServer;
    let anna: TestClient;
    before(async () => {
      ({ several, peer: evil, anna } = await SeveralServers.withScriptedServer(kind, 'evil.test'));
    });
    after(() => several.stop());

    async function open(room_version: string) {
      const roomId = await anna.createRoom({ preset: 'public_chat', room_version });
      const remote = await ScriptedMember.join(evil, 'a.test', roomId, mallory);
      return { roomId, remote, path: `/rooms/${enc(roomId)}` };
    }
    const redactionOf = (remote: ScriptedMember, redacts: string, content: JsonObject = {}) =>
      remote.build({ type: 'm.room.redaction', content }, { redacts });

    /** Sends an event that the next one has as its previous event. */
    async function send(remote: ScriptedMember, built: BuiltEvent): Promise<string> {
      assert.deepEqual(await remote.send(built.event.pdu), { [built.event.eventId]: {} });
      remote.advanceTo(built);
      return built.event.eventId;
    }

    const isHere = async (roomId: string, eventId: string) =>
      (await anna.call('GET', `/rooms/${enc(roomId)}/event/${enc(eventId)}`)).status === 200;
    const arrives = (roomId: string, eventId: string) => eventually(eventId, () => isHere(roomId, eventId));

    const slidingSync = async (roomId: string) => {
      const body = { room_subscriptions: { [roomId]: { timeline_limit: 50, required_state: [] } } };
      const path = '/_matrix/client/unstable/org.matrix.simplified_msc3575/sync';
      const { status, raw } = await anna.ask('POST', path, body);
      assert.equal(status, 200, raw);
      return raw;
    };

    /** Returns the names of the responses that hold an event id. */
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
        relations: (await anna.ask('GET', `/_matrix/client/v1${path}/relations/${enc(near)}`, undefined)).raw,
        notifications: await raw('/notifications'),
        timestamp_to_event: (
          await anna.ask('GET', `/_matrix/client/v1${path}/timestamp_to_event`, undefined, {
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
      it(`are not in any response to clients while they take no effect, in room version ${version}`, async () => {
        const { roomId, remote, path } = await open(version);
        await anna.do('PUT', `/pushrules/global/room/${enc(roomId)}`, { actions: ['notify'] });
        const target = await anna.say(roomId, 'the target');
        await eventually('the target', async () => remote.latest.eventId === target);
        const { next_batch: since } = (await anna.do('GET', '/sync')) as { next_batch: string };
        const relation = { 'm.relates_to': { rel_type: 'm.reference', event_id: target } };
        const bad = remote.build(
          { type: 'm.room.redaction', content: relation },
          { redacts: target, originServerTs: Date.now() + 3_600_000 },
        );
        await remote.send(bad.event.pdu);
        if (version === '11') remote.advanceTo(bad);
        const next = await remote.say('after it');
        await arrives(roomId, next);
        assert.deepEqual(await responsesWith(roomId, bad.event.eventId, target, since), []);
        const event = await anna.do('GET', `${path}/event/${enc(target)}`);
        assert.deepEqual(event['content'], { msgtype: 'm.text', body: 'the target' });
        const sync = await anna.do('GET', '/sync');
        const { join } = sync['rooms'] as { join: Record<string, Record<string, JsonObject>> };
        assert.equal(join[roomId]?.['unread_notifications']?.['notification_count'], 1);
        // They are part of the event graph, which other servers must be able to follow.
        const { status, body } = await evil.ask('a.test', 'GET', `/_matrix/federation/v1/event/${enc(next)}`);
        assert.equal(status, 200, JSON.stringify(body));
        if (version !== '11') return;
        const served = await evil.ask(
          'a.test',
          'GET',
          `/_matrix/federation/v1/event/${enc(bad.event.eventId)}`,
        );
        assert.deepEqual((served.body['pdus'] as JsonObject[])[0]?.['hashes'], bad.event.pdu['hashes']);
        const backfill = await evil.ask(
          'a.test',
          'GET',
          `/_matrix/federation/v1/backfill/${enc(roomId)}?limit=10&v=${enc(next)}`,
        );
        assert.match(JSON.stringify(backfill.body['pdus']), new RegExp(String(bad.event.pdu['depth'])));
        assert.ok(
          (backfill.body['pdus'] as JsonObject[]).some(({ type }) => type === 'm.room.redaction'),
          'the redaction is served by backfill',
        );
      });
    }

    for (const version of ['11', '1']) {
      it(`are shown to clients once their target has arrived and they take effect, in room version ${version}`, async () => {
        const { roomId, remote, path } = await open(version);
        const start = remote.latest;
        const hidden = remote.message('a secret target');
        const { next_batch: since } = (await anna.do('GET', '/sync')) as { next_batch: string };
        const redaction = await send(remote, redactionOf(remote, hidden.event.eventId));
        const near = await remote.say('after it');
        await arrives(roomId, near);
        assert.deepEqual(await responsesWith(roomId, redaction, near, since), []);
        assert.equal(hidden.event.prevEventIds[0], start.eventId);
        await remote.send(hidden.event.pdu);
        await arrives(roomId, hidden.event.eventId);
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
        const target = (chunk as ClientEventJson[]).find(({ event_id }) => event_id === hidden.event.eventId);
        assert.deepEqual(target?.content, {});
        const because = target?.unsigned?.['redacted_because'] as { event_id: string } | undefined;
        assert.equal(because?.event_id, redaction);
      });
    }

    it('are not in any response to clients while their target is unknown or in another room', async () => {
      const { roomId, remote, path } = await open('11');
      await anna.do('PUT', `${path}/state/m.room.power_levels`, {
        users: { [anna.id]: 100, [mallory]: 50 },
        redact: 50,
      });
      await eventually('the power levels', async () => remote.latest.type === 'm.room.power_levels');
      const { next_batch: since } = (await anna.do('GET', '/sync')) as { next_batch: string };
      const unknown = '$not-yet-known-0123456789abcdefghijklmnopqr';
      const pending = await send(remote, redactionOf(remote, unknown));
      const other = await open('11');
      const elsewhere = await anna.say(other.roomId, 'in another room');
      const wrongRoom = await send(remote, redactionOf(remote, elsewhere));
      const near = await remote.say('after it');
      await arrives(roomId, near);
      for (const redaction of [pending, wrongRoom]) {
        assert.deepEqual(await responsesWith(roomId, redaction, near, since), []);
      }
      const event = await anna.do('GET', `${other.path}/event/${enc(elsewhere)}`);
      assert.deepEqual(event['content'], { msgtype: 'm.text', body: 'in another room' });
    });

    it('are shown when their target was redacted before and they would take effect', async () => {
      const { roomId, remote } = await open('11');
      const messageId = await remote.say('twice redacted');
      const first = await send(remote, redactionOf(remote, messageId));
      const second = await send(remote, redactionOf(remote, messageId, { reason: 'again' }));
      await arrives(roomId, second);
      assert.ok(await isHere(roomId, first));
    });
  });
});
