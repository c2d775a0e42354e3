import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { PushGateway } from '../../src/pushers/test/push-gateway.ts';
import { eventually } from '../clients/eventually.ts';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import { ScriptedMember } from '../support/other-servers/scripted-member.ts';
import type { ScriptedServer } from '../support/other-servers/scripted-server.ts';
import { type FederatedServer, SeveralServers } from '../support/other-servers/several-servers.ts';
import { type ClientEventJson, enc, type TestClient } from '../support/users/test-client.ts';

interface ThreadSummary {
  readonly count: number;
  readonly latest_event: ClientEventJson;
}

/** Returns the content of a reply in the thread of an event. */
const inThread = (root: string) => ({ 'm.relates_to': { rel_type: 'm.thread', event_id: root } });

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('redactions from another server by a user who may not redact', () => {
    let several: SeveralServers;
    let server: FederatedServer;
    let evil: ScriptedServer;
    let anna: TestClient;
    before(async () => {
      ({ several, a: server, peer: evil, anna } = await SeveralServers.withScriptedServer(kind, 'evil.test'));
    });
    after(() => several.stop());

    /** Opens a room with two messages of Anna, which a user of the other server may not redact. */
    async function openRoom() {
      const roomId = await anna.createRoom({ preset: 'public_chat', room_version: '11' });
      const remote = await ScriptedMember.join(evil, 'a.test', roomId, '@mallory:evil.test');
      const messages = [await anna.say(roomId, 'first'), await anna.say(roomId, 'second')] as const;
      await eventually('both messages', async () => remote.latest.eventId === messages[1]);
      return { roomId, remote, messages };
    }

    /** Sends a redaction that the authorization rules accept. @returns its id */
    async function redact(remote: ScriptedMember, redacts: string, content = {}): Promise<string> {
      const built = remote.build({ type: 'm.room.redaction', content }, { redacts });
      assert.deepEqual(await remote.send(built.event.pdu), { [built.event.eventId]: {} });
      remote.advanceTo(built);
      return built.event.eventId;
    }

    const waitForEvent = (roomId: string, eventId: string) =>
      eventually(eventId, async () => {
        const { status } = await anna.call('GET', `/rooms/${enc(roomId)}/event/${enc(eventId)}`);
        return status === 200;
      });

    it('leaves redactions by a user without the power level out of the list of threads and its counts, also after a restart', async () => {
      const { roomId, remote, messages } = await openRoom();
      const [root, otherRoot] = messages;
      const reply = await anna.send(roomId, 'm.room.message', {
        msgtype: 'm.text',
        body: 'reply',
        ...inThread(root),
      });
      await eventually('the reply', async () => remote.latest.eventId === reply);
      const redaction = await redact(remote, root, inThread(root));
      const otherRedaction = await redact(remote, root, inThread(otherRoot));
      await waitForEvent(roomId, await remote.say('after them'));
      const checkThreads = async () => {
        const path = `/_matrix/client/v1/rooms/${enc(roomId)}/threads`;
        const { status, body, raw } = await anna.request('GET', path, undefined);
        assert.equal(status, 200, raw);
        const threads = (body['chunk'] as ClientEventJson[]).map(({ event_id, content, unsigned }) => {
          const relations = unsigned?.['m.relations'] as { 'm.thread': ThreadSummary };
          const { count, latest_event: latest } = relations['m.thread'];
          return [event_id, content['body'], count, latest.event_id];
        });
        assert.deepEqual(threads, [[root, 'first', 1, reply]]);
        for (const hidden of [redaction, otherRedaction]) assert.ok(!raw.includes(hidden), raw);
      };
      await checkThreads();
      await server.restart();
      await checkThreads();
    });

    it('sends no push for a redaction by a user without the power level, and a push for one that takes effect', async () => {
      const { roomId, remote, messages } = await openRoom();
      await anna.do('PUT', `/pushrules/global/room/${enc(roomId)}`, { actions: ['notify'] });
      const gateway = await PushGateway.start();
      try {
        await anna.do('POST', '/pushers/set', {
          kind: 'http',
          app_id: 'org.example.app',
          pushkey: 'key',
          app_display_name: 'App',
          device_display_name: 'Phone',
          lang: 'en',
          data: { url: gateway.url(), format: 'event_id_only' },
        });
        await redact(remote, messages[0]);
        const ownMessage = await remote.say('to be redacted by its sender');
        const effective = await redact(remote, ownMessage);
        await redact(remote, messages[1]);
        const last = await remote.say('last');
        await gateway.until(() => gateway.received.some(({ event_id: eventId }) => eventId === last));
        const pushed = gateway.received.flatMap(({ event_id: eventId }) => eventId ?? []);
        // The message itself is pushed only if its redaction arrives after the push was sent.
        assert.deepEqual(
          pushed.filter((eventId) => eventId !== ownMessage),
          [effective, last],
        );
      } finally {
        await gateway.stop();
      }
    });
  });
});
