import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import {
  holdAnswers,
  type Recipient,
  senderStarter,
  until,
} from '../../../test/support/other-servers/federation-sender.ts';
import { alice } from '../../../test/support/rooms/rooms.ts';
import type { JsonObject } from '../../protocol/index.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('sending events', () => {
    const start = senderStarter(open);

    it('sends events in order to the servers in the room only', async () => {
      const { test, recipients, say, roomId } = await start(['a.example', 'b.example']);
      const [a, b] = recipients;
      const other = await test.recipient('c.example');
      for (const body of ['1', '2', '3']) await say(body);
      await test.rooms.say('@user:a.example', roomId, 'of another server');
      await say('4');
      for (const recipient of [a, b]) await until(() => recipient.messages.length === 4);
      assert.deepEqual(a.messages, ['1', '2', '3', '4']);
      assert.deepEqual(b.messages, ['1', '2', '3', '4']);
      assert.deepEqual(other.arrived, []);
      const ids = [...a.arrived, ...b.arrived].map(({ id }) => id);
      assert.equal(new Set(ids).size, ids.length);
    });

    it('sends one transaction at a time, with at most 50 events', async () => {
      const { recipients, say } = await start(['a.example']);
      const [a] = recipients;
      let [concurrent, maxConcurrent] = [0, 0];
      const bodies = Array.from({ length: 120 }, (_, index) => String(index));
      let allSent: () => void = () => {};
      const sent = new Promise<void>((resolve) => {
        allSent = resolve;
      });
      a.answer = async () => {
        maxConcurrent = Math.max(maxConcurrent, ++concurrent);
        await sent;
        for (let turns = 0; turns < 100; turns++) await new Promise(setImmediate);
        concurrent--;
        return 200;
      };
      await Promise.all(bodies.map(say));
      allSent();
      await until(() => a.messages.length === 120);
      assert.deepEqual(
        a.messages.toSorted((x, y) => Number(x) - Number(y)),
        bodies,
      );
      assert.equal(maxConcurrent, 1);
      assert.ok(a.arrived.every(({ pdus }) => pdus.length <= 50));
      assert.ok(a.arrived.some(({ pdus }) => pdus.length === 50));
    });

    it('delivers to other servers without waiting for a slow server', async () => {
      const { recipients, say } = await start(['a.example', 'b.example']);
      const [a, b] = recipients;
      const finish = holdAnswers(a);
      for (const body of ['1', '2', '3']) {
        await say(body);
        await until(() => b.messages.at(-1) === body);
      }
      assert.ok(a.arrived.length <= 1);
      finish();
      await until(() => a.messages.length === 3);
      assert.deepEqual(a.messages, ['1', '2', '3']);
    });

    it("sends the end of a membership or invite to the user's server, and nothing later", async () => {
      const { test, recipients, say, roomId } = await start(['a.example', 'b.example']);
      const [a, b] = recipients;
      const c = await test.recipient('c.example');
      const { memberships } = test.rooms.rooms;
      await test.rooms.rooms.memberships.kick(alice, roomId, '@user:a.example');
      await memberships.invite(alice, roomId, '@user:c.example');
      await memberships.kick(alice, roomId, '@user:c.example');
      await say('not for a and c');
      await until(() => b.messages.length === 1);
      const memberOf = ({ arrived }: Recipient) =>
        arrived.flatMap(({ pdus }) =>
          pdus.flatMap(({ type, state_key: user, content }) =>
            type === 'm.room.member' && user !== alice && user !== '@user:b.example'
              ? `${user} ${(content as JsonObject)['membership']}`
              : [],
          ),
        );
      await until(() => memberOf(c).length > 0 && memberOf(a).includes('@user:a.example leave'));
      assert.deepEqual(memberOf(c), ['@user:c.example leave']);
      assert.deepEqual([a.messages, c.messages], [[], []]);
    });

    it("sends events also to servers that the room's server ACL denies", async () => {
      const { test, recipients, say, roomId } = await start(['a.example']);
      const [a] = recipients;
      const acl = { type: 'm.room.server_acl', stateKey: '' };
      const content = { allow: ['*'], deny: ['a.example'] };
      await test.rooms.rooms.sending.state({ userId: alice, deviceId: 'D' }, roomId, acl, content);
      await say('after');
      await until(() => a.messages.includes('after'));
      assert.ok(a.arrived.some(({ pdus }) => pdus.some(({ type }) => type === 'm.room.server_acl')));
    });

    it('sends a server no events from before its first join', async () => {
      const { test, recipients, say, roomId } = await start(['a.example']);
      const [a] = recipients;
      const b = await test.recipient('b.example');
      const sent = Array.from({ length: 20 }, (_, index) => say(`early ${index}`));
      sent.push(test.rooms.join('@user:b.example', roomId).then(() => say('late')));
      for (let index = 0; index < 20; index++) sent.push(say(`early too ${index}`));
      await Promise.all(sent);
      await until(() => a.messages.length === 41 && b.messages.includes('late'));
      const receivedDepths = b.arrived.flatMap(({ pdus }) => pdus.map(({ depth }) => Number(depth)));
      const head = await test.rooms.engine.heads.get(roomId);
      const entry = head?.entry('m.room.member', '@user:b.example');
      const join = await test.rooms.engine.events.get(entry!.nid);
      assert.ok(receivedDepths.every((depth) => depth > join!.event.depth));
    });

    it('sends no events to servers outside of the federation [option: federation_domain_whitelist]', async () => {
      const { recipients, say } = await start(['a.example', 'b.example'], {
        federation_domain_whitelist: ['b.example'],
      });
      const [a, b] = recipients;
      await say('1');
      await until(() => b.messages.length === 1);
      assert.deepEqual(a.arrived, []);
    });

    it('reports how long a destination has acknowledged nothing', async () => {
      const { test, recipients, say } = await start(['a.example']);
      const [a] = recipients;
      await test.idle();
      assert.equal(test.sender.status.longestWait, 0);
      a.answer = () => 503;
      await say('1');
      await test.waitsToRetry(1);
      test.clock.advance(40_000);
      assert.equal(test.sender.status.longestWait, 40_000);
      a.answer = () => 200;
      test.clock.advance(20_000);
      await until(() => test.sender.status.longestWait === 0);
    });
  });
});
