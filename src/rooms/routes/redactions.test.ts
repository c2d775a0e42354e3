import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { selectedDatabases } from '../../../test/support/databases/databases.ts';
import { enc } from '../../../test/support/users/test-client.ts';
import { assertRefused, eventOf, roomOfAnnaAndBen, ServerOfThreeUsers } from './test/three-users.ts';

for (const database of selectedDatabases(import.meta.url)) {
  describe(`a redaction, on ${database}`, () => {
    const users = new ServerOfThreeUsers(database);
    const room = () => roomOfAnnaAndBen(users);

    it('removes the content of a redacted event from all responses, and returns the reason', async () => {
      const { anna, ben } = users;
      const roomId = await room();
      const eventId = await ben.say(roomId, 'secret');
      const path = `/rooms/${enc(roomId)}/redact/${enc(eventId)}/r1`;
      await assertRefused(users.cleo, 'PUT', path, {}, 403, 'M_FORBIDDEN');
      const redaction = await anna.do('PUT', path, { reason: 'rude' });
      const event = await eventOf(ben, roomId, eventId);
      assert.deepEqual(event['content'], {});
      const redactedBecause = (event['unsigned'] as Record<string, Record<string, unknown>>)[
        'redacted_because'
      ];
      assert.equal(redactedBecause?.['event_id'], redaction['event_id']);
      assert.deepEqual(redactedBecause?.['content'], { reason: 'rude', redacts: eventId });
      assert.equal((event['unsigned'] as Record<string, unknown>)['redacted_by'], redaction['event_id']);
      for (const answer of [
        await ben.call('GET', '/sync'),
        await ben.call('GET', `/rooms/${enc(roomId)}/messages?dir=b`),
        await ben.call('GET', `/rooms/${enc(roomId)}/context/${enc(eventId)}`),
      ]) {
        assert.doesNotMatch(answer.raw, /secret/);
      }
    });

    it('has the fields of the body as its content', async () => {
      const { anna, ben } = users;
      const roomId = await room();
      const eventId = await ben.say(roomId, 'secret');
      const path = `/rooms/${enc(roomId)}/redact/${enc(eventId)}`;
      const body = { reason: null, redacts: '$other', 'org.example.source': 'bridge' };
      for (const [method, suffix] of [
        ['PUT', '/r1'],
        ['POST', ''],
      ] as const) {
        const redaction = await anna.do(method, path + suffix, body);
        const { content } = await eventOf(ben, roomId, String(redaction['event_id']));
        assert.deepEqual(content, { redacts: eventId, 'org.example.source': 'bridge' });
      }
    });

    it('requires the redact level only for redactions of events of other users', async () => {
      const { anna, ben } = users;
      const roomId = await room();
      const eventOfAnna = await anna.say(roomId, 'a');
      const eventOfBen = await ben.say(roomId, 'b');
      await assertRefused(
        ben,
        'PUT',
        `/rooms/${enc(roomId)}/redact/${enc(eventOfAnna)}/1`,
        {},
        403,
        'M_FORBIDDEN',
      );
      const content = { redacts: eventOfAnna };
      await assertRefused(
        ben,
        'PUT',
        `/rooms/${enc(roomId)}/send/m.room.redaction/1`,
        content,
        403,
        'M_FORBIDDEN',
      );
      await ben.redact(roomId, eventOfBen);
      const sent = await anna.send(roomId, 'm.room.redaction', { redacts: eventOfAnna, reason: 'x' });
      assert.deepEqual((await eventOf(ben, roomId, eventOfAnna))['content'], {});
      assert.equal((await eventOf(ben, roomId, sent))['redacts'], eventOfAnna);
    });

    it('removes the content of redacted state events and the data derived from them', async () => {
      const { anna, ben, cleo } = users;
      const roomId = await room();
      const renaming = await ben.setState(
        roomId,
        'm.room.member',
        { membership: 'join', displayname: 'Secret' },
        ben.id,
      );
      await anna.redact(roomId, renaming);
      await anna.redact(roomId, await anna.setState(roomId, 'm.room.name', { name: 'Secret' }));
      await anna.membership('invite', roomId, cleo);
      const answers = [
        await anna.call('GET', `/rooms/${enc(roomId)}/state`),
        await anna.call('GET', `/rooms/${enc(roomId)}/joined_members`),
        await anna.call('GET', `/rooms/${enc(roomId)}/members`),
        await anna.call('GET', '/sync'),
        await cleo.call('GET', '/sync'),
      ];
      for (const { raw } of answers) assert.doesNotMatch(raw, /Secret/);
      assert.deepEqual(await anna.do('GET', `/rooms/${enc(roomId)}/state/m.room.name`), {});
      const { rooms } = await anna.sync();
      assert.notEqual(rooms?.join?.[roomId]?.summary?.['m.heroes'], undefined, 'the room has no name');
    });

    it('answers 400 to a redaction of an event of another room', async () => {
      const { anna } = users;
      const [roomId, otherRoom] = [await room(), await room()];
      const idInOtherRoom = await anna.say(otherRoom, 'x');
      const path = `/rooms/${enc(roomId)}/redact/${enc(idInOtherRoom)}`;
      await assertRefused(anna, 'PUT', `${path}/1`, {}, 400, 'M_UNKNOWN');
      await assertRefused(anna, 'POST', path, {}, 400, 'M_UNKNOWN');
      const send = `/rooms/${enc(roomId)}/send/m.room.redaction/1`;
      await assertRefused(anna, 'PUT', send, { redacts: idInOtherRoom }, 400, 'M_UNKNOWN');
      assert.deepEqual((await eventOf(anna, otherRoom, idInOtherRoom))['content'], {
        msgtype: 'm.text',
        body: 'x',
      });
    });

    it('sends a new redaction for each POST to /redact, whose path has no transaction id', async () => {
      const { anna, ben, cleo } = users;
      const roomId = await room();
      const eventId = await ben.say(roomId, 'secret');
      const path = `/rooms/${enc(roomId)}/redact/${enc(eventId)}`;
      await assertRefused(cleo, 'POST', path, {}, 403, 'M_FORBIDDEN');
      const first = await anna.do('POST', path, { reason: 'rude' });
      const second = await anna.do('POST', path);
      assert.notEqual(first['event_id'], second['event_id']);
      assert.deepEqual((await eventOf(ben, roomId, eventId))['content'], {});
      const { content } = await eventOf(ben, roomId, String(first['event_id']));
      assert.equal((content as { reason?: string }).reason, 'rude');
    });

    it('accepts redactions of unknown events, redactions and redacted events, but not of m.room.create', async () => {
      const { anna } = users;
      const roomId = await room();
      await anna.redact(roomId, '$unknown');
      const eventId = await anna.say(roomId, 'x');
      await anna.redact(roomId, await anna.redact(roomId, eventId));
      await anna.redact(roomId, eventId);
      const state = await anna.call('GET', `/rooms/${enc(roomId)}/state`);
      const events = state.body as unknown as { type: string; event_id: string }[];
      const creation = events.find(({ type }) => type === 'm.room.create');
      const path = `/rooms/${enc(roomId)}/redact/${enc(creation?.event_id ?? '')}/1`;
      await assertRefused(anna, 'PUT', path, {}, 403, 'M_FORBIDDEN');
    });
  });
}
