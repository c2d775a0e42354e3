import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { selectedDatabases } from '../../../test/support/databases/databases.ts';
import { enc, TestClient } from '../../../test/support/users/test-client.ts';
import { assertRefused, eventOf, roomOfAnnaAndBen, ServerOfThreeUsers } from './test/three-users.ts';

for (const database of selectedDatabases(import.meta.url)) {
  describe(`endpoints that send events, on ${database}`, () => {
    const users = new ServerOfThreeUsers(database);
    const room = () => roomOfAnnaAndBen(users);

    it('refuses requests of users who are not joined to the room or lack the power level, without disclosing memberships', async () => {
      const { ben, cleo } = users;
      const roomId = await room();
      const path = `/rooms/${enc(roomId)}`;
      const eventId = await ben.say(roomId, 'hello');
      await assertRefused(cleo, 'PUT', `${path}/send/m.room.message/1`, { body: 'x' }, 403, 'M_FORBIDDEN');
      await assertRefused(cleo, 'PUT', `${path}/state/m.room.topic`, { topic: 'x' }, 403, 'M_FORBIDDEN');
      await assertRefused(cleo, 'PUT', `${path}/redact/${enc(eventId)}/1`, {}, 403, 'M_FORBIDDEN');
      await assertRefused(cleo, 'GET', `${path}/event/${enc(eventId)}`, undefined, 404, 'M_NOT_FOUND');
      await assertRefused(cleo, 'GET', `${path}/state`, undefined, 403, 'M_FORBIDDEN');
      await assertRefused(cleo, 'GET', `${path}/messages?dir=b`, undefined, 403, 'M_FORBIDDEN');
      await assertRefused(cleo, 'GET', `${path}/members`, undefined, 403, 'M_FORBIDDEN');
      await assertRefused(cleo, 'GET', `${path}/joined_members`, undefined, 403, 'M_FORBIDDEN');
      await assertRefused(cleo, 'GET', `${path}/aliases`, undefined, 403, 'M_FORBIDDEN');
      await assertRefused(ben, 'PUT', `${path}/state/m.room.topic`, { topic: 'x' }, 403, 'M_FORBIDDEN');
      const banned = await TestClient.register(users.server, `banned-${database}`);
      const stranger = await TestClient.register(users.server, `stranger-${database}`);
      await users.anna.do('POST', `${path}/ban`, { user_id: banned.id });
      for (const action of ['invite', 'kick', 'ban', 'unban']) {
        for (const { id } of [ben, banned, stranger]) {
          const { status, body } = await cleo.call('POST', `${path}/${action}`, { user_id: id });
          const outside = /^(You are|The sender is) not in (this|the) room$/;
          assert.equal(status, 403);
          assert.match(
            body['error'] as string,
            outside,
            `the error of ${action} discloses the membership of ${id}`,
          );
        }
      }
    });

    it('sends a new event for each POST without a transaction id', async () => {
      const { anna, cleo } = users;
      const roomId = await room();
      const path = `/rooms/${enc(roomId)}/send/m.room.message`;
      const [first, second] = [
        await anna.do('POST', path, { msgtype: 'm.text', body: 'disk full' }),
        await anna.do('POST', path, { msgtype: 'm.text', body: 'disk full' }),
      ].map(({ event_id }) => String(event_id));
      assert.notEqual(first, second);
      assert.deepEqual((await eventOf(anna, roomId, second!))['content'], {
        msgtype: 'm.text',
        body: 'disk full',
      });
      const redaction = `/rooms/${enc(roomId)}/send/m.room.redaction`;
      await anna.do('POST', redaction, { redacts: first });
      assert.deepEqual((await eventOf(anna, roomId, first!))['content'], {});
      await assertRefused(anna, 'POST', path, undefined, 400, 'M_NOT_JSON');
      await assertRefused(cleo, 'POST', path, { body: 'x' }, 403, 'M_FORBIDDEN');
      await assertRefused(anna, 'POST', redaction, {}, 400, 'M_BAD_JSON');
    });

    it('refuses malformed and too large requests to send events, set state and read rooms', async () => {
      const { anna } = users;
      const roomId = await room();
      const path = `/rooms/${enc(roomId)}`;
      for (const pathSuffix of ['send/m.room.message/1', 'state/m.room.topic', 'state/x/y']) {
        await assertRefused(anna, 'PUT', `${path}/${pathSuffix}`, undefined, 400, 'M_NOT_JSON');
      }
      for (const body of [[], 'text', '{']) {
        const answer = await anna.call('PUT', `${path}/send/m.room.message/2`, body);
        assert.equal(answer.status, 400, answer.raw);
      }
      await assertRefused(
        anna,
        'PUT',
        `${path}/send/m.room.message/3`,
        { body: 'x'.repeat(70_000) },
        413,
        'M_TOO_LARGE',
      );
      await assertRefused(anna, 'PUT', `${path}/send/${'x'.repeat(256)}/4`, {}, 413, 'M_TOO_LARGE');
      await assertRefused(anna, 'PUT', `${path}/state/x/${'x'.repeat(256)}`, {}, 413, 'M_TOO_LARGE');
      await assertRefused(anna, 'PUT', `${path}/send/m.room.message/5`, { number: 1.5 }, 400, 'M_BAD_JSON');
      await assertRefused(anna, 'PUT', `${path}/state/x/${enc('@ben:test')}`, {}, 403, 'M_FORBIDDEN');
      await assertRefused(anna, 'PUT', `${path}/state/m.room.create`, {}, 400, 'M_INVALID_PARAM');
      await assertRefused(anna, 'PUT', `${path}/state/m.room.redaction`, {}, 400, 'M_INVALID_PARAM');
      await assertRefused(
        anna,
        'PUT',
        `${path}/state/m.room.power_levels`,
        { users: 'x' },
        400,
        'M_BAD_JSON',
      );
      await assertRefused(anna, 'PUT', `${path}/state/m.room.member/${enc(anna.id)}`, {}, 400, 'M_BAD_JSON');
      await assertRefused(anna, 'PUT', `${path}/send/m.room.redaction/6`, {}, 400, 'M_BAD_JSON');
      for (const invalidText of ['%00', '%F0%28', 'x%00y']) {
        for (const pathSuffix of [
          `state/${invalidText}`,
          `state/x/${invalidText}`,
          `send/${invalidText}/7`,
          `send/m/${invalidText}`,
        ]) {
          const { status } = await anna.call('PUT', `${path}/${pathSuffix}`, {});
          assert.equal(status, 400, pathSuffix);
        }
        const isUtf8 = invalidText !== '%F0%28';
        const state = await anna.call('GET', `/rooms/${invalidText}/state`);
        assert.equal(state.status, isUtf8 ? 403 : 400, invalidText);
        const event = await anna.call('GET', `${path}/event/${invalidText}`);
        assert.equal(event.status, isUtf8 ? 404 : 400, invalidText);
      }
      await anna.say(roomId, 'all is well');
    });

    it('refuses requests for unknown rooms and events, with 403 M_FORBIDDEN where 404 would reveal which rooms exist', async () => {
      const { anna } = users;
      const roomId = await room();
      const unknown = '!unknown:elsewhere.example';
      for (const action of ['join', 'leave', 'forget']) {
        await assertRefused(anna, 'POST', `/rooms/${enc(unknown)}/${action}`, {}, 404, 'M_NOT_FOUND');
      }
      await assertRefused(
        anna,
        'POST',
        `/join/${enc(unknown)}?server_name=127.0.0.1:1&via=127.0.0.1:2`,
        {},
        502,
        'M_UNKNOWN',
      );
      await assertRefused(anna, 'POST', `/join/${enc('#nothing:test')}`, {}, 404, 'M_NOT_FOUND');
      await assertRefused(anna, 'POST', '/join/nothing', {}, 400, 'M_INVALID_PARAM');
      await assertRefused(anna, 'POST', `/knock/${enc(unknown)}`, {}, 404, 'M_NOT_FOUND');
      // The answer is the same as for a room that the user is not in, so that the answer does not reveal which rooms
      // exist.
      for (const path of ['send/m/1', 'state/m/x', 'redact/$x/1']) {
        await assertRefused(anna, 'PUT', `/rooms/${enc(unknown)}/${path}`, {}, 403, 'M_FORBIDDEN');
      }
      await assertRefused(
        anna,
        'GET',
        `/rooms/${enc(unknown)}/messages?dir=b`,
        undefined,
        403,
        'M_FORBIDDEN',
      );
      for (const eventId of ['$unknown', '$unknown:elsewhere.example', 'nonsense']) {
        await assertRefused(
          anna,
          'GET',
          `/rooms/${enc(roomId)}/event/${enc(eventId)}`,
          undefined,
          404,
          'M_NOT_FOUND',
        );
        await assertRefused(
          anna,
          'GET',
          `/rooms/${enc(roomId)}/context/${enc(eventId)}`,
          undefined,
          404,
          'M_NOT_FOUND',
        );
      }
      const idInOtherRoom = await anna.say(await room(), 'elsewhere');
      await assertRefused(
        anna,
        'GET',
        `/rooms/${enc(roomId)}/event/${enc(idInOtherRoom)}`,
        undefined,
        404,
        'M_NOT_FOUND',
      );
      await assertRefused(
        anna,
        'GET',
        `/rooms/${enc(roomId)}/context/${enc(idInOtherRoom)}`,
        undefined,
        404,
        'M_NOT_FOUND',
      );
      await assertRefused(
        anna,
        'PUT',
        `/rooms/${enc(roomId)}/redact/${enc(idInOtherRoom)}/1`,
        {},
        400,
        'M_UNKNOWN',
      );
    });

    it('answers a repeated transaction id with the first event id, also after a restart', async () => {
      const { anna, ben } = users;
      const roomId = await room();
      const path = `/rooms/${enc(roomId)}/send/m.room.message/same`;
      const first = await anna.do('PUT', path, { body: 'one', msgtype: 'm.text' });
      assert.deepEqual(await anna.do('PUT', path, { body: 'two', msgtype: 'm.text' }), first);
      assert.notDeepEqual(await ben.do('PUT', path, { body: 'two', msgtype: 'm.text' }), first);
      await users.server.restart();
      assert.deepEqual(await anna.do('PUT', path, { body: 'three', msgtype: 'm.text' }), first);
      const event = await eventOf(anna, roomId, String(first['event_id']));
      assert.deepEqual(event['content'], { body: 'one', msgtype: 'm.text' });
      assert.equal((event['unsigned'] as Record<string, unknown>)['transaction_id'], 'same');
      const seen = await eventOf(ben, roomId, String(first['event_id']));
      assert.equal((seen['unsigned'] as Record<string, unknown>)['transaction_id'], undefined);
    });
  });
}
